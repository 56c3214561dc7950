#include "sim/study/point_calibration.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <thread>

#include "sim/calibration/confidence.hpp"
#include "sim/calibration/parameters.hpp"
#include "sim/study/ordered_chunks.hpp"

namespace dculab::sim {
namespace {

constexpr double kLeastKernelSigma = 0.5;
constexpr double kHalf = 0.5;  // of a prior's width
constexpr double kSourceTimeSigma = 0.1;
constexpr double kRowsOfPrior = 5;  // that kModelLogSigma counts as where a source's spread is estimated

[[nodiscard]] std::size_t figures() { return parameters().size() + 1; }

// Shares of the priors' widths, by whose figure it is.
struct Widths {
  double device = 0, kernels = 0, host = 0;
  double least = 0;  // that a share is taken of
  double time = 0;
};

[[nodiscard]] CrossedGroup group(std::string name, const Widths& widths) {
  CrossedGroup result{std::move(name), {}};
  for (const Parameter& parameter : parameters()) {
    const Owner owner = owner_of(parameter);
    const double share =
        owner == Owner::device ? widths.device : (owner == Owner::kernels ? widths.kernels : widths.host);
    result.sigma.push_back(share * std::max(widths.least, parameter.log_sigma));
  }
  result.sigma.push_back(widths.time);
  result.is_nuisance = widths.time > 0;
  return result;
}

[[nodiscard]] std::string vendor_of(const Machine& machine) { return std::string(lower::name(machine.vendor)); }

[[nodiscard]] std::string program_on_vendor(const Machine& machine) {
  return machine.stack.program + " on " + vendor_of(machine);
}

// A group, and what a prediction does not share with the points when it is left out.
struct PointGroup {
  CrossedGroup group;
  std::optional<Distance> distance{};
};

[[nodiscard]] CrossedGroup group_of_all() { return group("all", {.device = 1, .kernels = kHalf, .host = 1}); }

[[nodiscard]] CrossedGroup group_of_program(const Stack& stack) {
  return group("program " + stack.program, {.kernels = kHalf, .host = 1, .least = kLeastKernelSigma});
}

[[nodiscard]] CrossedGroup group_of_stack(const Stack& stack) {
  return group("stack " + stack.name, {.kernels = kHalf, .host = kHalf, .least = kLeastKernelSigma});
}

[[nodiscard]] std::vector<PointGroup> groups_of_device(const Machine& machine) {
  return {{group_of_all()},
          {group("vendor " + vendor_of(machine), {.device = kHalf, .kernels = kHalf}), Distance::vendor},
          {group("family " + family_of(machine), {.device = kHalf})},
          {group("machine " + machine.name, {.device = kHalf}), Distance::machine}};
}

// Of the device and of the stack that runs there.
[[nodiscard]] std::vector<PointGroup> groups_of(const Machine& machine) {
  const Stack& stack = machine.stack;
  std::vector<PointGroup> groups = groups_of_device(machine);
  groups.push_back({group_of_program(stack)});
  groups.push_back({group_of_stack(stack), Distance::stack});
  groups.push_back(
      {group(program_on_vendor(machine), {.kernels = kHalf, .least = kLeastKernelSigma}), Distance::program});
  groups.push_back({group(stack.program + " for " + family_of(machine), {.kernels = 1, .least = kLeastKernelSigma})});
  return groups;
}

[[nodiscard]] std::vector<PointGroup> groups_of(const MeasuredPoint& point) {
  std::vector<PointGroup> groups = point.recipe->probe ? groups_of_device(*point.machine) : groups_of(*point.machine);
  groups.push_back({group("source " + point.source, {.time = kSourceTimeSigma}), Distance::source});
  return groups;
}

[[nodiscard]] Seconds price_at(const Machine& machine, const Recipe& recipe, double log_factor) {
  return std::exp(log_factor) * price_recipe(machine, recipe);
}

// d log(time) / d theta, backwards over `step`, so that shares which reach 1 still have one.
[[nodiscard]] std::vector<double> slopes_at(const Machine& base, const std::vector<double>& theta, const Recipe& recipe,
                                            Seconds time, double step) {
  std::vector<double> slopes;
  Machine machine = with_factors(base, theta);
  for (const Parameter& parameter : parameters()) {
    const double value = get(machine, parameter);
    set(machine, parameter, value * std::exp(-step));
    slopes.push_back(std::log(time / price_at(machine, recipe, theta.back())) / step);
    set(machine, parameter, value);
  }
  slopes.push_back(1);
  return slopes;
}

[[nodiscard]] RowSlope row_at(const MeasuredPoint& point, double sigma, const std::vector<double>& theta, double step) {
  const Seconds time = price_at(with_factors(*point.machine, theta), *point.recipe, theta.back());
  RowSlope row{std::log(time / point.time) / sigma, {}};
  if (step == 0) return row;
  row.slope = slopes_at(*point.machine, theta, *point.recipe, time, step);
  for (double& slope : row.slope) slope /= sigma;
  return row;
}

// Rows are priced on all cores: each is independent of the others.
[[nodiscard]] std::vector<RowSlope> rows_at(std::span<const MeasuredPoint> points, const std::vector<double>& sigmas,
                                            const std::vector<std::vector<double>>& thetas, double step) {
  std::vector<RowSlope> rows(points.size());
  const unsigned workers = std::max(1U, std::thread::hardware_concurrency());
  const auto make_worker = [&]() -> ChunkWorker {
    return [&](std::uint64_t worker) {
      for (std::size_t row = worker; row < points.size(); row += workers)
        rows[row] = row_at(points[row], sigmas[row], thetas[row], step);
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

// The machine with the stack's host times as its own: there they are fitted.
[[nodiscard]] Machine with_host(Machine machine) {
  machine.overheads.host_per_step = machine.stack.host_per_step.value_or(machine.overheads.host_per_step);
  machine.overheads.host_per_sequence = machine.stack.host_per_sequence.value_or(machine.overheads.host_per_sequence);
  machine.stack.host_per_step.reset();
  machine.stack.host_per_sequence.reset();
  return machine;
}

// What the groups of that name add, over all of them.
[[nodiscard]] std::vector<double> sum_of(const Effects& effects, std::span<const std::string> groups) {
  std::vector<double> sum(figures(), 0.0);
  for (const std::string& name : groups) {
    const auto known = effects.find(name);
    if (known == effects.end()) continue;
    for (std::size_t figure = 0; figure < sum.size(); ++figure) sum[figure] += known->second[figure];
  }
  return sum;
}

[[nodiscard]] std::vector<std::string> names_of(const std::vector<PointGroup>& groups) {
  std::vector<std::string> names;
  for (const PointGroup& each : groups) names.push_back(each.group.name);
  return names;
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
      table.add(distance, vendor_of(*points[row].machine), kind_of(*points[row].recipe), residual * sigmas[row]);
  }
  return table;
}

}  // namespace

PointCalibration::PointCalibration(std::span<const MeasuredPoint> measured) {
  std::map<const Machine*, Machine> machines;
  std::vector<MeasuredPoint> points(measured.begin(), measured.end());
  for (MeasuredPoint& point : points)
    point.machine = &machines.try_emplace(point.machine, with_host(*point.machine)).first->second;
  const Grouped grouped = group_points(points);
  std::vector<double> sigmas = stated_sigmas(points);
  const RowValues values = [&](const std::vector<std::vector<double>>& thetas, double step) {
    return rows_at(points, sigmas, thetas, step);
  };
  const CrossedEffects first(grouped.groups, grouped.members, values);
  widen_by_source(points, first, sigmas);
  fit_ = std::make_shared<CrossedEffects>(grouped.groups, grouped.members, values, first.effects());
  table_ = score_left_out(points, grouped, *fit_, values, sigmas);
  points_ = static_cast<int>(points.size());
  for (std::size_t row = 0; row < points.size(); ++row) {
    const MeasuredPoint& point = points[row];
    const std::string stack = point.recipe->probe ? "" : point.machine->stack.name;
    std::set<std::string_view>& moving = moving_[{point.machine->name, stack}];
    for (std::size_t figure = 0; figure < parameters().size(); ++figure)
      if (fit_->rows()[row].slope[figure] != 0) moving.insert(parameters()[figure].key);
    if (point.recipe->probe) continue;
    ++rows_[{point.machine->name, stack}];
    hosts_.emplace(stack, point.machine->overheads);
  }
}

Machine PointCalibration::device(const Machine& machine) const {
  return with_factors(machine, sum_of(effects(), names_of(groups_of_device(machine))));
}

Reached PointCalibration::reached(const Machine& machine) const {
  return with_factors(machine, sum_of(effects(), names_of(groups_of(machine)))).stack.reached;
}

Stack PointCalibration::anywhere(Stack stack) const {
  Machine machine;
  machine.stack = std::move(stack);
  const auto host = hosts_.find(machine.stack.name);
  if (host != hosts_.end()) machine.overheads = host->second;
  machine = with_host(std::move(machine));
  const std::vector<std::string> groups{group_of_all().name, group_of_program(machine.stack).name,
                                        group_of_stack(machine.stack).name};
  machine = with_factors(machine, sum_of(effects(), groups));
  if (host == hosts_.end()) return std::move(machine.stack);
  machine.stack.host_per_step = machine.overheads.host_per_step;
  machine.stack.host_per_sequence = machine.overheads.host_per_sequence;
  return std::move(machine.stack);
}

bool PointCalibration::tell(const Machine& machine, const Parameter& parameter) const {
  for (const auto& [where, moving] : moving_)
    if (where.first == machine.name && (owner_of(parameter) == Owner::device || where.second == machine.stack.name) &&
        moving.contains(parameter.key))
      return true;
  return false;
}

bool PointCalibration::has_seen(lower::Vendor vendor) const {
  return effects().contains("vendor " + std::string(lower::name(vendor)));
}

bool PointCalibration::has_seen(const Stack& stack) const { return effects().contains("program " + stack.program); }

bool PointCalibration::has_seen(const std::string& machine) const { return effects().contains("machine " + machine); }

PointIntervals PointCalibration::intervals(const Machine& machine) const {
  const std::string vendor = vendor_of(machine);
  const auto seen = [this](const std::string& group) { return effects().contains(group); };
  Distance distance = Distance::source;
  if (!seen(group_of_stack(machine.stack).name)) distance = Distance::stack;
  if (!seen(program_on_vendor(machine))) distance = Distance::program;
  if (!seen("machine " + machine.name)) distance = Distance::machine;
  if (!seen("vendor " + vendor)) distance = Distance::vendor;
  PointIntervals intervals;
  if (const auto rows = rows_.find({machine.name, machine.stack.name}); rows != rows_.end())
    intervals.rows = rows->second;
  for (const auto& [name, kind] : kPriceKinds) intervals.factors[kind] = table_.factor(distance, vendor, kind);
  return intervals;
}

}  // namespace dculab::sim
