#include "cli/study/variant_interval.hpp"

#include <cmath>
#include <vector>

#include "sim/calibration/confidence.hpp"

namespace dculab::cli {
namespace {

[[nodiscard]] bool is_rate(const std::string& metric) { return metric.ends_with("per_second"); }

[[nodiscard]] std::vector<double> shifts_of(const VariantCost& cost) {
  return sim::prior_shifts(cost.machine,
                           [&cost](const sim::Machine& moved) { return sim::price_recipe(moved, cost.recipe); });
}

}  // namespace

FigureInterval interval_of(const VariantCost& cost, const std::string& metric) {
  const Seconds time = sim::price_recipe(cost.machine, cost.recipe);
  const sim::Confidence trust = sim::recipe_confidence(cost.machine, cost.recipe, time);
  const double figure = cost.figures.at(metric);
  if (is_rate(metric)) return {figure * (time / trust.high), figure * (time / trust.low)};
  return {figure * (trust.low / time), figure * (trust.high / time)};
}

std::optional<FigureInterval> interval_of_change(const VariantCost& baseline, const VariantCost& variant,
                                                 const std::string& metric) {
  if (baseline.machine.name != variant.machine.name || baseline.machine.calibration || variant.machine.calibration)
    return std::nullopt;
  const std::vector<double> before = shifts_of(baseline), after = shifts_of(variant);
  double variance = 0;
  for (std::size_t index = 0; index < before.size(); ++index) variance += std::pow(after[index] - before[index], 2);
  const double factor = std::exp(sim::kNormalQuantile95 * std::sqrt(variance));
  const double ratio = variant.figures.at(metric) / baseline.figures.at(metric);
  return FigureInterval{ratio / factor - 1, ratio * factor - 1};
}

}  // namespace dculab::cli
