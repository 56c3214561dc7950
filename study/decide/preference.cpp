#include "study/decide/preference.hpp"

#include <algorithm>
#include <cmath>

#include "sim/calibration/confidence.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] double shift_of(const Evaluated& choice, std::size_t cause) {
  return cause < choice.shifts.size() ? choice.shifts[cause] : 0;
}

[[nodiscard]] Cost cost_against(const Evaluated& choice, const Evaluated& best, double resolution) {
  Cost cost = difference(choice, best);
  cost.tied = cost.value <= resolution || cost.low <= 0;
  return cost;
}

// The largest figure besides that of `but`.
[[nodiscard]] std::optional<std::size_t> largest(std::span<const Evaluated> choices, std::optional<std::size_t> but) {
  std::optional<std::size_t> found;
  for (std::size_t index = 0; index < choices.size(); ++index)
    if (index != but && choices[index].figure > (found ? choices[*found].figure : 0)) found = index;
  return found;
}

}  // namespace

Cost difference(const Evaluated& of, const Evaluated& over) {
  double variance = 0;
  for (std::size_t cause = 0; cause < std::max(of.shifts.size(), over.shifts.size()); ++cause)
    variance += std::pow(shift_of(over, cause) - shift_of(of, cause), 2);
  const double ratio = over.figure / of.figure, spread = std::exp(sim::kNormalQuantile95 * std::sqrt(variance));
  return {.value = ratio - 1, .low = ratio / spread - 1, .high = ratio * spread - 1};
}

std::optional<Verdict> decide(std::span<const Evaluated> choices, const Preference& preference) {
  const std::optional<std::size_t> best = largest(choices, std::nullopt);
  if (!best) return std::nullopt;
  Verdict verdict{.best = *best, .chosen = *best, .runner_up = {}, .costs = {}};
  for (const Evaluated& choice : choices)
    verdict.costs.push_back(
        choice.figure > 0 ? std::optional(cost_against(choice, choices[*best], preference.resolution)) : std::nullopt);
  const double accepted = std::max(preference.resolution, preference.given_up);
  const auto is_good = [&](const std::optional<Cost>& cost) { return cost && cost->value <= accepted; };
  verdict.chosen = static_cast<std::size_t>(std::ranges::find_if(verdict.costs, is_good) - verdict.costs.begin());
  verdict.runner_up = largest(choices, verdict.chosen);
  return verdict;
}

}  // namespace dculab::study
