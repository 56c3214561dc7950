#include "sim/study/point_calibration.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "sim/calibration/errors.hpp"
#include "sim/calibration/fit.hpp"
#include "sim/calibration/hold_out.hpp"

namespace dculab::sim {
namespace {

constexpr std::size_t kFolds = 5;
constexpr std::size_t kFewestForConformal = 5;

using Points = std::vector<const MeasuredRecipe*>;

[[nodiscard]] Machine fit_points(const Machine& base, const Points& points) {
  const auto rows = [&points](const Machine& machine) {
    std::vector<double> residuals;
    for (const MeasuredRecipe* point : points)
      residuals.push_back(std::log(price_recipe(machine, point->recipe) / point->time) / kModelLogSigma);
    return residuals;
  };
  return fit_residuals(base, rows).machine;
}

// Each point predicted by a fit that did not see it.
[[nodiscard]] std::vector<PredictedMeasured> cross_validate(const Machine& base,
                                                            std::span<const MeasuredRecipe> points) {
  std::vector<PredictedMeasured> pairs;
  for (std::size_t fold = 0; fold < kFolds; ++fold) {
    Points seen, unseen;
    for (std::size_t row = 0; row < points.size(); ++row)
      (row % kFolds == fold ? unseen : seen).push_back(&points[row]);
    const Machine machine = fit_points(base, seen);
    for (const MeasuredRecipe* point : unseen) pairs.push_back({price_recipe(machine, point->recipe), point->time});
  }
  return pairs;
}

// Sizes by which interpolation and extrapolation are told apart, the largest over the steps.
[[nodiscard]] std::map<std::string, double> features(const std::string& kind, const Recipe& recipe) {
  double tokens = 0, context = 0, bytes = 0;
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

}  // namespace

Machine calibrate_to_points(const Machine& base, std::span<const MeasuredRecipe> points) {
  Points all;
  std::map<std::string, Range> domain;
  for (const MeasuredRecipe& point : points) {
    all.push_back(&point);
    for (const auto& [feature, value] : features(point.kind, point.recipe)) {
      Range& range = domain.try_emplace(feature, Range{value, value}).first->second;
      range = {std::min(range.low, value), std::max(range.high, value)};
    }
  }
  Machine machine = fit_points(base, all);
  // So few points say nothing about their own spread: the priors' intervals stay.
  if (points.size() < kFewestForConformal) return machine;
  const std::vector<PredictedMeasured> unseen = cross_validate(base, points);
  machine.calibration = Calibration{.held_out_steps = static_cast<int>(unseen.size()),
                                    .coverage = kIntervalCoverage,
                                    .interval_factor = conformal_factor(unseen, kIntervalCoverage),
                                    .domain = std::move(domain)};
  return machine;
}

Confidence recipe_confidence(const Machine& machine, const std::string& kind, const Recipe& recipe, Seconds predicted) {
  double factor = 1;
  Basis basis = Basis::priors;
  if (machine.calibration) {
    const bool known = inside(machine.calibration->domain, features(kind, recipe));
    basis = known ? Basis::interpolated : Basis::extrapolated;
    factor = std::pow(machine.calibration->interval_factor, known ? 1 : 2);
  } else {
    factor = std::exp(kNormalQuantile95 * recipe_log_sigma(machine, recipe));
  }
  return {std::max(predicted / factor, std::min(predicted, recipe_floor(machine, recipe))), predicted * factor, basis};
}

}  // namespace dculab::sim
