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

[[nodiscard]] std::vector<CrossedGroup> groups_of_device(const Machine& machine) {
  return {group("all", {.device = 1, .kernels = kHalf, .host = 1}),
          group("vendor " + vendor_of(machine), {.device = kHalf, .kernels = kHalf}),
          group("family " + family_of(machine), {.device = kHalf}),
          group("machine " + machine.name, {.device = kHalf})};
}

[[nodiscard]] std::vector<CrossedGroup> groups_of_stack(const Machine& machine) {
  const Stack& stack = machine.stack;
  return {group("program " + stack.program, {.kernels = kHalf, .host = 1, .least = kLeastKernelSigma}),
          group("stack " + stack.name, {.kernels = kHalf, .host = kHalf, .least = kLeastKernelSigma}),
          group(stack.program + " on " + vendor_of(machine), {.kernels = kHalf, .least = kLeastKernelSigma}),
          group(stack.program + " for " + family_of(machine), {.kernels = 1, .least = kLeastKernelSigma})};
}

[[nodiscard]] std::vector<CrossedGroup> groups_of(const MeasuredPoint& point) {
  std::vector<CrossedGroup> groups = groups_of_device(*point.machine);
  if (!point.recipe->probe)
    for (CrossedGroup& each : groups_of_stack(*point.machine)) groups.push_back(std::move(each));
  groups.push_back(group("source " + point.source, {.time = kSourceTimeSigma}));
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
  std::vector<std::vector<std::size_t>> members;  // [points]
};

[[nodiscard]] Grouped group_points(std::span<const MeasuredPoint> points) {
  Grouped grouped;
  std::map<std::string, std::size_t> index_of;
  for (const MeasuredPoint& point : points) {
    std::vector<std::size_t>& members = grouped.members.emplace_back();
    for (CrossedGroup& each : groups_of(point)) {
      const auto [known, is_new] = index_of.emplace(each.name, grouped.groups.size());
      members.push_back(known->second);
      if (is_new) grouped.groups.push_back(std::move(each));
    }
  }
  return grouped;
}

[[nodiscard]] std::shared_ptr<const CrossedEffects> fit_points(std::span<const MeasuredPoint> points,
                                                               const Grouped& grouped,
                                                               const std::vector<double>& sigmas,
                                                               const Effects& start) {
  const auto values = [&](const std::vector<std::vector<double>>& thetas, double step) {
    return rows_at(points, sigmas, thetas, step);
  };
  return std::make_shared<CrossedEffects>(grouped.groups, grouped.members, values, start);
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
  const std::vector<double> residuals = fit.residuals();
  for (std::size_t row = 0; row < points.size(); ++row)
    sizes[points[row].source].push_back(std::abs(residuals[row]) / kMedianOfNormal);
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

[[nodiscard]] std::vector<double> sum_of(const Effects& effects, const std::vector<CrossedGroup>& groups) {
  std::vector<double> sum(figures(), 0.0);
  for (const CrossedGroup& each : groups) {
    const auto known = effects.find(each.name);
    if (known == effects.end()) continue;
    for (std::size_t figure = 0; figure < sum.size(); ++figure) sum[figure] += known->second[figure];
  }
  return sum;
}

// The distance that leaving the group out stands for.
[[nodiscard]] std::optional<Distance> distance_of(const std::string& group) {
  if (group.starts_with("source ")) return Distance::source;
  if (group.starts_with("machine ")) return Distance::machine;
  if (group.starts_with("vendor ")) return Distance::vendor;
  if (group.find(" on ") != std::string::npos) return Distance::program;
  return std::nullopt;
}

[[nodiscard]] IntervalTable score_left_out(std::span<const MeasuredPoint> points, const Grouped& grouped,
                                           const CrossedEffects& fit, const std::vector<double>& sigmas) {
  IntervalTable table;
  for (std::size_t index = 0; index < grouped.groups.size(); ++index) {
    const std::optional<Distance> distance = distance_of(grouped.groups[index].name);
    if (!distance) continue;
    const CrossedEffects::LeftOut left = fit.leave_out(index);
    for (std::size_t at = 0; at < left.rows.size(); ++at) {
      const MeasuredPoint& point = points[left.rows[at]];
      table.add(*distance, vendor_of(*point.machine), kind_of(*point.recipe), left.residual[at] * sigmas[left.rows[at]],
                1 / static_cast<double>(left.rows.size()));
    }
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
  fit_ = fit_points(points, grouped, sigmas, {});
  widen_by_source(points, *fit_, sigmas);
  fit_ = fit_points(points, grouped, sigmas, fit_->effects());
  table_ = score_left_out(points, grouped, *fit_, sigmas);
  points_ = static_cast<int>(points.size());
  for (const MeasuredPoint& point : points) {
    if (point.recipe->probe) continue;
    ++rows_[{point.machine->name, point.machine->stack.name}];
    hosts_.emplace(point.machine->stack.name, point.machine->overheads);
  }
}

Machine PointCalibration::device(const Machine& machine) const {
  return with_factors(machine, sum_of(effects(), groups_of_device(machine)));
}

Reached PointCalibration::reached(const Machine& machine) const {
  std::vector<CrossedGroup> groups = groups_of_device(machine);
  for (CrossedGroup& each : groups_of_stack(machine)) groups.push_back(std::move(each));
  return with_factors(machine, sum_of(effects(), groups)).stack.reached;
}

Stack PointCalibration::anywhere(Stack stack) const {
  Machine machine;
  machine.stack = std::move(stack);
  const auto host = hosts_.find(machine.stack.name);
  if (host != hosts_.end()) machine.overheads = host->second;
  machine = with_host(std::move(machine));
  std::vector<CrossedGroup> groups = groups_of_stack(machine);
  groups.resize(2);  // its program and itself
  groups.push_back(groups_of_device(machine).front());
  machine = with_factors(machine, sum_of(effects(), groups));
  if (host == hosts_.end()) return std::move(machine.stack);
  machine.stack.host_per_step = machine.overheads.host_per_step;
  machine.stack.host_per_sequence = machine.overheads.host_per_sequence;
  return std::move(machine.stack);
}

bool PointCalibration::has_seen(lower::Vendor vendor) const {
  return effects().contains("vendor " + std::string(lower::name(vendor)));
}

bool PointCalibration::has_seen(const Stack& stack) const { return effects().contains("program " + stack.program); }

PointIntervals PointCalibration::intervals(const Machine& machine) const {
  const std::string vendor = vendor_of(machine);
  const auto seen = [this](const std::string& group) { return effects().contains(group); };
  Distance distance = Distance::source;
  if (!seen(machine.stack.program + " on " + vendor)) distance = Distance::program;
  if (!seen("machine " + machine.name)) distance = Distance::machine;
  if (!seen("vendor " + vendor)) distance = Distance::vendor;
  PointIntervals intervals;
  if (const auto rows = rows_.find({machine.name, machine.stack.name}); rows != rows_.end())
    intervals.rows = rows->second;
  for (const auto& [name, kind] : kPriceKinds) intervals.factors[kind] = table_.factor(distance, vendor, kind);
  return intervals;
}

}  // namespace dculab::sim
