#include "study/validate/points_set.hpp"

#include "config/machine_figure.hpp"
#include "config/machine_file.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "files/input.hpp"
#include "study/scenario/locate.hpp"
#include "study/validate/published_kernel.hpp"

namespace dculab::study {
namespace {

constexpr const char* kHardware = "hardware";  // in place of a program

[[nodiscard]] std::string below_floor(const sim::Machine& machine, const ReadPoint& read) {
  const Seconds measured = read.priced.recipe.time(read.point.value);
  const Seconds floor = sim::recipe_floor(machine, read.priced.recipe);
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

// A mixture's kernel has no ops yet, whatever runs it.
void require_priced(const config::PublishedPoint& point) {
  if (point.kind == config::PointKind::fused_moe) throw InputError("fused_moe is not priced yet");
}

// Adds what runs `point` to `set` when it is known.
[[nodiscard]] const RunBy& find_run(const config::PublishedPoint& point, PointSet& set) {
  const MachineKey key = key_of(point);
  const auto known = set.machines.find(key);
  if (known != set.machines.end()) return known->second;
  const auto file = try_find_machine(point.machine);
  if (!file) throw InputError("no machine '" + point.machine + "' under hwmodels");
  RunBy run{config::read_machine_file(*file), nullptr};
  set_clock(point.clock, run.machine);
  if (!config::is_of_hardware(point.kind)) {
    run.software = &find_software(point.software, run.machine, set.stacks);
    run.machine = as_run_by(*run.software, std::move(run.machine), set.stacks);
    if (!point.kernel.empty()) run_kernel(run.machine.stack, point.kernel);
  }
  return set.machines.emplace(key, std::move(run)).first->second;
}

}  // namespace

PointSet read_point_set(const std::string& file) {
  PointSet set;
  for (config::PublishedPoint& point : config::read_points_file(file)) {
    ReadPoint read{std::move(point), {}, "", ""};
    try {
      require_priced(read.point);
      const RunBy& run = find_run(read.point, set);
      read.priced = price_as(read.point, run.machine, run.software);
      read.refused = below_floor(run.machine, read);
    } catch (const files::ReservedFileError&) {
      throw;
    } catch (const InputError& error) {
      read.unpriced = error.what();
    }
    set.points.push_back(std::move(read));
  }
  return set;
}

MachineKey key_of(const config::PublishedPoint& point) {
  const bool alone = config::is_of_hardware(point.kind);
  return {point.machine, point.clock, alone ? "" : point.software, point.kernel, alone ? kHardware : ""};
}

sim::PointOrigin origin_of(const config::PublishedPoint& point) {
  return {point.machine, config::is_of_hardware(point.kind) ? kHardware : engine_of(point.software), point.software};
}

sim::MeasuredPoint measured(const PointSet& set, const ReadPoint& read) {
  return {origin_of(read.point), std::string(config::name(read.point.kind)), &set.machine_of(read), &read.priced.recipe,
          read.priced.recipe.time(read.point.value)};
}

}  // namespace dculab::study
