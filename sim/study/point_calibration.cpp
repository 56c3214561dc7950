#include "sim/study/point_calibration.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>
#include <tuple>

#include "sim/calibration/confidence.hpp"
#include "sim/study/ordered_chunks.hpp"
#include "sim/study/point_groups.hpp"

namespace dculab::sim {
namespace {

constexpr double kRowsOfPrior = 5;  // that kModelLogSigma counts as where a source's spread is estimated
constexpr double kAlike = 0.05;     // correlation of errors of rows that one source measured of one kind in one place

[[nodiscard]] std::vector<PointGroup> groups_of(const MeasuredPoint& point) {
  std::vector<PointGroup> groups =
      point.measured_run->probe ? groups_of_device(*point.machine) : sim::groups_of(*point.machine);
  groups.push_back(group_of_source(point.source, point.clock));
  return groups;
}

// Measurements that each row counts as: n rows whose errors are alike tell as much as n / (1 + (n - 1) kAlike).
[[nodiscard]] std::vector<double> counts_of(std::span<const MeasuredPoint> points) {
  const auto series = [](const MeasuredPoint& point) {
    return std::tuple(point.source, point.machine->name, point.machine->stack.name, kind_of(*point.measured_run));
  };
  std::map<decltype(series(points[0])), double> sizes;
  for (const MeasuredPoint& point : points) ++sizes[series(point)];
  std::vector<double> counts;
  for (const MeasuredPoint& point : points) counts.push_back(1 / (1 + (sizes.at(series(point)) - 1) * kAlike));
  return counts;
}

[[nodiscard]] Seconds price_at(const Machine& machine, const MeasuredRun& measured_run, double log_factor) {
  return std::exp(log_factor) * price_run(machine, measured_run);
}

// d log(time) / d theta, behind theta over `step`, where shares that reach 1 still have one.
[[nodiscard]] std::vector<double> slopes_at(const Machine& base, const std::vector<double>& theta,
                                            const MeasuredRun& measured_run, Seconds time, double step) {
  std::vector<double> slopes;
  Machine machine = moved(base, theta);
  for (const Parameter& parameter : parameters()) {
    const double value = get(machine, parameter);
    set(machine, parameter, value * std::exp(-step * freedom(base, parameter)));
    slopes.push_back(std::log(time / price_at(machine, measured_run, theta.back())) / step);
    set(machine, parameter, value);
  }
  slopes.push_back(1);
  return slopes;
}

[[nodiscard]] RowSlope row_at(const MeasuredPoint& point, double sigma, double count, const std::vector<double>& theta,
                              double step) {
  const Seconds time = price_at(moved(*point.machine, theta), *point.measured_run, theta.back());
  RowSlope row{std::log(time / point.time) / sigma, {}, count};
  if (step == 0) return row;
  row.slope = slopes_at(*point.machine, theta, *point.measured_run, time, step);
  for (double& slope : row.slope) slope /= sigma;
  return row;
}

// Rows are priced on all cores: each is independent of the others.
[[nodiscard]] std::vector<RowSlope> rows_at(std::span<const MeasuredPoint> points, const std::vector<double>& sigmas,
                                            const std::vector<double>& counts,
                                            const std::vector<std::vector<double>>& thetas, double step) {
  std::vector<RowSlope> rows(points.size());
  const unsigned workers = std::max(1U, std::thread::hardware_concurrency());
  const auto make_worker = [&]() -> ChunkWorker {
    return [&](std::uint64_t worker) {
      for (std::size_t row = worker; row < points.size(); row += workers)
        rows[row] = row_at(points[row], sigmas[row], counts[row], thetas[row], step);
      return std::string();
    };
  };
  work_in_order({0, workers}, static_cast<int>(workers), make_worker, [](std::uint64_t, const std::string&) {});
  return rows;
}

struct Grouped {
  std::vector<CrossedGroup> groups;
  std::vector<std::optional<Distance>> distances;  // [groups] that leaving them out stands for
  std::vector<std::vector<std::size_t>> members;   // [points]
};

[[nodiscard]] Grouped group_points(std::span<const MeasuredPoint> points) {
  Grouped grouped;
  std::map<std::string, std::size_t> index_of;
  for (const MeasuredPoint& point : points) {
    std::vector<std::size_t>& members = grouped.members.emplace_back();
    for (PointGroup& each : groups_of(point)) {
      const auto [known, is_new] = index_of.emplace(each.group.name, grouped.groups.size());
      members.push_back(known->second);
      if (!is_new) continue;
      grouped.groups.push_back(std::move(each.group));
      grouped.distances.push_back(each.distance);
    }
  }
  return grouped;
}

[[nodiscard]] std::vector<double> stated_sigmas(std::span<const MeasuredPoint> points) {
  std::vector<double> sigmas;
  for (const MeasuredPoint& point : points) sigmas.push_back(std::hypot(kModelLogSigma, point.spread));
  return sigmas;
}

// The scatter of each source's rows about the fit, where it is larger than stated: by their median, with kRowsOfPrior
// more that scatter as stated.
void widen_by_source(std::span<const MeasuredPoint> points, const CrossedEffects& fit, std::vector<double>& sigmas) {
  constexpr double kMedianOfNormal = 0.6745;
  std::map<std::string, std::vector<double>> sizes;
  for (std::size_t row = 0; row < points.size(); ++row)
    sizes[points[row].source].push_back(std::abs(fit.rows()[row].residual) / kMedianOfNormal);
  std::map<std::string, double> wider;
  for (auto& [source, each] : sizes) {
    const auto middle = each.begin() + static_cast<std::ptrdiff_t>(each.size() / 2);
    std::ranges::nth_element(each, middle);
    const double rows = static_cast<double>(each.size());
    wider[source] = std::sqrt(std::max(1.0, (rows * *middle * *middle + kRowsOfPrior) / (rows + kRowsOfPrior)));
  }
  for (std::size_t row = 0; row < points.size(); ++row) sigmas[row] *= wider[points[row].source];
}

// No fit knows more digits.
[[nodiscard]] double four_digits(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g", value);
  return std::strtod(text.data(), nullptr);
}

[[nodiscard]] Machine learned(const Machine& file, const Effects& effects, const std::vector<PointGroup>& groups) {
  Machine machine = moved(file, sum_of(effects, groups));
  for (const Parameter& parameter : parameters())
    if (get(machine, parameter) != get(file, parameter)) set(machine, parameter, four_digits(get(machine, parameter)));
  return machine;
}

[[nodiscard]] IntervalTable score_left_out(std::span<const MeasuredPoint> points, const Grouped& grouped,
                                           const CrossedEffects& fit, const RowValues& values,
                                           const std::vector<double>& sigmas) {
  IntervalTable table;
  for (const Distance distance : kDistances) {
    std::vector<std::size_t> left_out;
    for (std::size_t group = 0; group < grouped.groups.size(); ++group)
      if (grouped.distances[group] == distance) left_out.push_back(group);
    for (const auto& [row, residual] : fit.leave_out(left_out, values))
      table.add(distance, vendor_name(*points[row].machine), kind_of(*points[row].measured_run),
                residual * sigmas[row]);
  }
  return table;
}

}  // namespace

PointCalibration::PointCalibration(std::span<const MeasuredPoint> measured) {
  std::map<const Machine*, Machine> machines;
  std::vector<MeasuredPoint> points(measured.begin(), measured.end());
  for (MeasuredPoint& point : points)
    point.machine = &machines.try_emplace(point.machine, with_own_host(*point.machine)).first->second;
  const Grouped grouped = group_points(points);
  std::vector<double> sigmas = stated_sigmas(points);
  const std::vector<double> counts = counts_of(points);
  const RowValues values = [&](const std::vector<std::vector<double>>& thetas, double step) {
    return rows_at(points, sigmas, counts, thetas, step);
  };
  const CrossedEffects first(grouped.groups, grouped.members, values);
  widen_by_source(points, first, sigmas);
  fit_ = std::make_shared<CrossedEffects>(grouped.groups, grouped.members, values, first.effects());
  table_ = score_left_out(points, grouped, *fit_, values, sigmas);
  points_ = static_cast<int>(points.size());
  for (std::size_t row = 0; row < points.size(); ++row) {
    const MeasuredPoint& point = points[row];
    const std::string stack = point.measured_run->probe ? "" : point.machine->stack.name;
    std::set<std::string_view>& moving = moving_[{point.machine->name, stack}];
    for (std::size_t figure = 0; figure < parameters().size(); ++figure)
      if (fit_->rows()[row].slope[figure] != 0) moving.insert(parameters()[figure].key);
    if (point.measured_run->probe) continue;
    ++rows_[{point.machine->name, stack}];
    hosts_.emplace(stack, point.machine->overheads);
  }
}

Machine PointCalibration::device(const Machine& machine) const {
  return learned(machine, effects(), groups_of_device(machine));
}

Reached PointCalibration::reached(const Machine& machine) const {
  return learned(machine, effects(), sim::groups_of(machine)).stack.reached;
}

Stack PointCalibration::anywhere(Stack stack) const {
  Machine machine;
  machine.stack = std::move(stack);
  const auto host = hosts_.find(machine.stack.name);
  if (host != hosts_.end()) machine.overheads = host->second;
  machine = with_own_host(std::move(machine));
  machine = learned(machine, effects(), groups_anywhere(machine.stack));
  if (host == hosts_.end()) return std::move(machine.stack);
  machine.stack.host_per_step = machine.overheads.host_per_step;
  machine.stack.host_per_sequence = machine.overheads.host_per_sequence;
  return std::move(machine.stack);
}

bool PointCalibration::tell(const Machine& machine, const Parameter& parameter) const {
  for (const auto& [where, moving] : moving_)
    if (where.first == machine.name && (parameter.owner == Owner::device || where.second == machine.stack.name) &&
        moving.contains(parameter.key))
      return true;
  return false;
}

bool PointCalibration::has_seen(lower::Vendor vendor) const {
  return effects().contains("vendor " + std::string(lower::name(vendor)));
}

bool PointCalibration::has_seen(const Stack& stack) const {
  return effects().contains(group_of_program(stack).group.name);
}

bool PointCalibration::has_seen(const std::string& machine) const { return effects().contains("machine " + machine); }

PointIntervals PointCalibration::intervals(const Machine& machine) const {
  const std::string vendor = vendor_name(machine);
  const auto seen = [this](const std::string& group) { return effects().contains(group); };
  Distance distance = Distance::source;
  if (!seen(group_of_stack_on_vendor(machine).group.name)) distance = Distance::stack;
  if (!seen(group_of_program_on_vendor(machine).group.name)) distance = Distance::program;
  if (!seen("machine " + machine.name)) distance = Distance::machine;
  if (!seen("vendor " + vendor)) distance = Distance::vendor;
  PointIntervals intervals;
  if (const auto rows = rows_.find({machine.name, machine.stack.name}); rows != rows_.end())
    intervals.rows = rows->second;
  for (const auto& [name, kind] : kPriceKinds) intervals.factors[kind] = table_.factor(distance, vendor, kind);
  return intervals;
}

}  // namespace dculab::sim
