#include "study/validate/points_set.hpp"

#include "config/machine_figure.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "files/input.hpp"
#include "study/validate/published_kernel.hpp"
#include "study/validate/published_spread.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] std::string below_floor(const sim::Machine& machine, const ReadPoint& read) {
  const Seconds measured = read.priced.measured_run.time(read.point.value);
  const Seconds floor = sim::run_floor(machine, read.priced.measured_run);
  if (measured >= floor) return "";
  return "took " + config::short_text(measured) + ", below the " + config::short_text(floor) + " that the peaks of " +
         machine.name + " allow";
}

void set_clock(const std::string& clock, sim::Machine& machine) {
  if (clock.empty()) return;
  Node node;
  node.kind = NodeKind::scalar;
  node.key = "clock";
  node.text = clock;
  config::ProblemList problems("column clock");
  config::set_figures(machine, {&node, 1}, problems);
  problems.throw_if_any();
}

void set_timing(const config::PublishedPoint& point, sim::MeasuredRun& measured_run) {
  if (measured_run.timed == sim::Timed::engine) return;
  measured_run.holds_call = holds_call(point);
  if (starts_cold(point)) measured_run.timed = sim::Timed::cold_kernel;
}

[[nodiscard]] ReadPoint read_point(config::PublishedPoint point, Runs& runs) {
  ReadPoint read{std::move(point), {}, "", ""};
  try {
    const RunBy& run = runs.of(read.point);
    read.priced = price_as(read.point, run.machine, run.software);
    set_timing(read.point, read.priced.measured_run);
    read.refused = below_floor(run.machine, read);
  } catch (const files::ReservedFileError&) {
    throw;
  } catch (const InputError& error) {
    read.unpriced = error.what();
  }
  return read;
}

// Points count once.
void require_uncalibrated(const sim::Machine& machine) {
  if (machine.calibration && !machine.calibration->intervals.empty())
    throw InputError("machine " + machine.name,
                     "its file has learned from points already; calibrate without DCULAB_DATA, from the shipped files");
}

}  // namespace

Runs::Runs(std::shared_ptr<const sim::PointCalibration> learned) : catalog_(learned_catalog(std::move(learned))) {}

const RunBy& Runs::of(const config::PublishedPoint& point) {
  const bool alone = config::is_of_hardware(point.kind);
  const Key key{point.machine, point.clock, alone ? "" : point.software, point.kernel, alone ? "hardware" : ""};
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  RunBy run{catalog_.machine(point.machine), nullptr};
  set_clock(point.clock, run.machine);
  if (!alone) {
    run.software = &find_software(point.software, run.machine, catalog_.stacks());
    run.machine = as_run_by(*run.software, std::move(run.machine), catalog_.stacks());
    if (!point.kernel.empty()) run_kernel(run.machine.stack, point.kernel);
  }
  return known_.emplace(key, std::move(run)).first->second;
}

PointSet read_point_set(const std::vector<std::string>& files) {
  PointSet set;
  for (const std::string& file : files)
    for (config::PublishedPoint& point : config::read_points_file(file))
      set.points.push_back(read_point(std::move(point), set.runs));
  return set;
}

std::string program_of(const config::PublishedPoint& point) {
  return config::is_of_hardware(point.kind) ? "" : engine_of(point.software);
}

std::string source_of(const config::PublishedPoint& point) {
  const std::string repository = point.source.substr(0, point.source.find_first_of("@ "));
  return repository.find('/') != std::string::npos ? repository : point.source;
}

std::shared_ptr<const sim::PointCalibration> learn_from(PointSet& set,
                                                        const std::function<bool(const ReadPoint&)>& is_left_out) {
  std::vector<sim::MeasuredPoint> points;
  for (const ReadPoint& read : set.points) {
    if (!read.teaches() || is_left_out(read)) continue;
    require_uncalibrated(set.runs.of(read.point).machine);
    points.push_back({.source = source_of(read.point),
                      .clock = read.point.clock,
                      .machine = &set.runs.of(read.point).machine,
                      .measured_run = &read.priced.measured_run,
                      .time = read.priced.measured_run.time(read.point.value),
                      .spread = published_spread(read.point)});
  }
  if (points.empty()) throw InputError("no point to learn from can be predicted");
  return std::make_shared<const sim::PointCalibration>(points);
}

Catalog learned_catalog(std::shared_ptr<const sim::PointCalibration> learned) {
  return {std::move(learned), library_stacks(Catalog().stacks())};
}

}  // namespace dculab::study
