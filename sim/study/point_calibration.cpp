#include "sim/study/point_calibration.hpp"

#include <algorithm>
#include <cmath>
#include <thread>

#include "sim/calibration/hold_out.hpp"
#include "sim/calibration/parameters.hpp"
#include "sim/study/ordered_chunks.hpp"

namespace dculab::sim {
namespace {

constexpr double kLeastEngineSigma = 0.5;
constexpr double kOwnShare = 0.5;   // of a prior's width: machine, software
constexpr double kTimeSigma = 0.1;  // of the time itself, in each group
constexpr std::size_t kFewestForConformal = 5;

[[nodiscard]] std::size_t figures() { return parameters().size() + 1; }

[[nodiscard]] CrossedGroup group(const std::string& name, double share, double least, double time_sigma) {
  CrossedGroup result{name, {}};
  for (const Parameter& parameter : parameters()) result.sigma.push_back(share * std::max(least, parameter.log_sigma));
  result.sigma.push_back(time_sigma);
  return result;
}

// What a point belongs to, the widest first.
[[nodiscard]] std::vector<CrossedGroup> groups_of(const PointOrigin& origin) {
  return {group("all", 1, 0, 0), group("machine " + origin.machine, kOwnShare, 0, kTimeSigma),
          group("engine " + origin.engine, 1, kLeastEngineSigma, kTimeSigma),
          group("software " + origin.software, kOwnShare, kLeastEngineSigma, kTimeSigma)};
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

[[nodiscard]] RowSlope row_at(const MeasuredPoint& point, const std::vector<double>& theta, double step) {
  const Seconds time = price_at(with_factors(*point.machine, theta), *point.recipe, theta.back());
  RowSlope row{std::log(time / point.time) / kModelLogSigma, {}};
  if (step == 0) return row;
  row.slope = slopes_at(*point.machine, theta, *point.recipe, time, step);
  for (double& slope : row.slope) slope /= kModelLogSigma;
  return row;
}

// Rows are priced on all cores: each is independent of the others.
[[nodiscard]] std::vector<RowSlope> rows_at(std::span<const MeasuredPoint> points,
                                            const std::vector<std::vector<double>>& thetas, double step) {
  std::vector<RowSlope> rows(points.size());
  const unsigned workers = std::max(1U, std::thread::hardware_concurrency());
  const auto make_worker = [&]() -> ChunkWorker {
    return [&](std::uint64_t worker) {
      for (std::size_t row = worker; row < points.size(); row += workers)
        rows[row] = row_at(points[row], thetas[row], step);
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
    for (CrossedGroup& each : groups_of(point.origin)) {
      const auto [known, is_new] = index_of.emplace(each.name, grouped.groups.size());
      members.push_back(known->second);
      if (is_new) grouped.groups.push_back(std::move(each));
    }
  }
  return grouped;
}

// Sizes by which interpolation and extrapolation are told apart, the largest over the steps.
[[nodiscard]] std::map<std::string, double> features(const std::string& kind, const Recipe& recipe) {
  double tokens = 0, context = 0, bytes = recipe.probe ? recipe.probe->bytes.value() : 0;
  for (const RecipeStep& step : recipe.steps) {
    bytes = std::max(bytes, step_footprint(step.plan).value());
    for (const Op& op : step.plan.ops) {
      tokens = std::max(tokens, static_cast<double>(op.m));
      if (op.attention.num_sequences > 0)
        context = std::max(context, op.attention.context_tokens / op.attention.num_sequences);
    }
  }
  return {{kind + ".new_tokens", tokens}, {kind + ".context_tokens", context}, {kind + ".bytes", bytes}};
}

[[nodiscard]] bool inside(const std::map<std::string, Range>& domain, const std::map<std::string, double>& sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [&domain](const auto& entry) {
    const auto found = domain.find(entry.first);
    return found != domain.end() && entry.second >= found->second.low && entry.second <= found->second.high;
  });
}

// The 90 % quantile of |error| / sd, as split conformal takes it.
[[nodiscard]] double conformal_quantile(std::vector<double> scores) {
  if (scores.size() < kFewestForConformal) return kNormalQuantile95;
  std::sort(scores.begin(), scores.end());
  const double wanted = std::ceil(kIntervalCoverage * static_cast<double>(scores.size() + 1));
  return scores[std::min(scores.size(), static_cast<std::size_t>(wanted)) - 1];
}

struct WeighedScore {
  double score, weight;
};

[[nodiscard]] double weighed_quantile(std::vector<WeighedScore> scores) {
  if (scores.size() < kFewestForConformal) return kNormalQuantile95;
  std::ranges::sort(scores, {}, &WeighedScore::score);
  double total = 0, below = 0;
  for (const WeighedScore& each : scores) total += each.weight;
  for (const WeighedScore& each : scores)
    if ((below += each.weight) >= kIntervalCoverage * total) return each.score;
  return scores.back().score;
}

// Where every group whose name begins so is left out in turn. Groups weigh alike, however many rows each has: a new one
// is like the others, not like most rows.
[[nodiscard]] double left_out_quantile(const CrossedEffects& fit, const Grouped& grouped, const std::string& begin) {
  std::vector<WeighedScore> scores;
  for (std::size_t index = 0; index < grouped.groups.size(); ++index) {
    if (!grouped.groups[index].name.starts_with(begin)) continue;
    const CrossedEffects::LeftOut left = fit.leave_out(index);
    for (std::size_t row = 0; row < left.rows.size(); ++row)
      scores.push_back({std::abs(left.residual[row]) / std::hypot(1, left.deviation[row]),
                        1 / static_cast<double>(left.rows.size())});
  }
  return weighed_quantile(std::move(scores));
}

}  // namespace

PointCalibration::PointCalibration(std::span<const MeasuredPoint> points) {
  const Grouped grouped = group_points(points);
  const auto values = [points](const std::vector<std::vector<double>>& thetas, double step) {
    return rows_at(points, thetas, step);
  };
  fit_ = std::make_shared<CrossedEffects>(grouped.groups, grouped.members, values);
  for (const MeasuredPoint& point : points)
    for (const auto& [feature, value] : features(point.kind, *point.recipe)) {
      Range& range = domain_.try_emplace(feature, Range{value, value}).first->second;
      range = {std::min(range.low, value), std::max(range.high, value)};
    }
  quantiles_ = {conformal_quantile(fit_->leave_one_out_scores()), left_out_quantile(*fit_, grouped, "machine "),
                left_out_quantile(*fit_, grouped, "engine ")};
}

std::vector<double> PointCalibration::theta(const PointOrigin& origin) const {
  std::vector<double> sum(figures(), 0.0);
  for (const CrossedGroup& each : groups_of(origin)) {
    const auto known = effects().find(each.name);
    if (known == effects().end()) continue;
    for (std::size_t figure = 0; figure < sum.size(); ++figure) sum[figure] += known->second[figure];
  }
  return sum;
}

double PointCalibration::quantile(const PointOrigin& origin) const {
  const bool machine_seen = effects().contains("machine " + origin.machine);
  const bool engine_seen = effects().contains("engine " + origin.engine);
  if (machine_seen && engine_seen) return quantiles_.seen;
  if (engine_seen) return quantiles_.new_machine;
  return machine_seen ? quantiles_.new_engine : std::max(quantiles_.new_machine, quantiles_.new_engine);
}

Machine PointCalibration::machine(const Machine& base, const PointOrigin& origin) const {
  return with_factors(base, theta(origin));
}

PointPrediction PointCalibration::predict(const Machine& base, const PointOrigin& origin, const std::string& kind,
                                          const Recipe& recipe) const {
  const std::vector<double> at = theta(origin);
  const MeasuredPoint asked{origin, kind, &base, &recipe, Seconds(1)};
  constexpr double kStep = 1e-3;
  const RowSlope row = row_at(asked, at, kStep);
  const Seconds floor = recipe_floor(base, recipe);
  const Seconds time = std::max(floor, Seconds(std::exp(row.residual * kModelLogSigma)));
  const double deviation = std::sqrt(1 + fit_->variance(groups_of(origin), row.slope)) * kModelLogSigma;
  const double factor = std::exp(quantile(origin) * deviation);
  const bool known = effects().contains("machine " + origin.machine) && effects().contains("engine " + origin.engine) &&
                     inside(domain_, features(kind, recipe));
  return {time, {std::max(time / factor, floor), time * factor, known ? Basis::interpolated : Basis::extrapolated}};
}

Confidence recipe_confidence(const Machine& machine, const Recipe& recipe, Seconds predicted) {
  const double factor = std::exp(kNormalQuantile95 * recipe_log_sigma(machine, recipe));
  const Seconds floor = std::min(predicted, recipe_floor(machine, recipe));
  return {std::max(predicted / factor, floor), predicted * factor, Basis::priors};
}

}  // namespace dculab::sim
