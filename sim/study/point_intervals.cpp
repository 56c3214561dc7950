#include "sim/study/point_intervals.hpp"

#include <algorithm>
#include <cmath>

#include "sim/calibration/confidence.hpp"
#include "sim/calibration/hold_out.hpp"

namespace dculab::sim {
namespace {

constexpr double kUnmeasuredLogSigma = 0.5;  // where nothing at all was left out: an assumption
constexpr std::size_t kFewestRows = 10;      // of which a 90 % quantile is the last but one

}  // namespace

void IntervalTable::add(Distance distance, const std::string& vendor, PriceKind kind, double log_error, double weight) {
  scores_[{distance, kind}][vendor].push_back({std::abs(log_error), weight});
}

double IntervalTable::quantile(std::vector<Score> scores) {
  std::ranges::sort(scores, {}, &Score::log_error);
  double total = 0, below = 0;
  for (const Score& each : scores) total += each.weight;
  for (const Score& each : scores)
    if ((below += each.weight) >= kIntervalCoverage * total) return each.log_error;
  return scores.back().log_error;
}

std::optional<double> IntervalTable::median_error(Distance distance, const std::string& vendor) const {
  std::vector<double> errors;
  for (const auto& [group, vendors] : scores_)
    if (const auto found = vendors.find(vendor); group.first == distance && found != vendors.end())
      for (const Score& score : found->second) errors.push_back(std::exp(score.log_error) - 1);
  if (errors.empty()) return std::nullopt;
  const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
  std::ranges::nth_element(errors, middle);
  return *middle;
}

std::optional<double> IntervalTable::factor_at(Distance distance, const std::string& vendor, PriceKind kind) const {
  std::vector<Score> of_kind, of_all;
  for (const auto& [group, vendors] : scores_)
    for (const auto& [name, scores] : vendors) {
      if (group.first != distance) continue;
      if (group.second == kind && name == vendor && scores.size() >= kFewestRows) return std::exp(quantile(scores));
      if (group.second == kind) of_kind.insert(of_kind.end(), scores.begin(), scores.end());
      of_all.insert(of_all.end(), scores.begin(), scores.end());
    }
  if (of_kind.size() >= kFewestRows) return std::exp(quantile(of_kind));
  if (of_all.size() >= kFewestRows) return std::exp(quantile(of_all));
  return std::nullopt;
}

double IntervalTable::factor(Distance distance, const std::string& vendor, PriceKind kind) const {
  std::optional<double> widest;
  for (const Distance nearer : kDistances)
    if (const auto factor = factor_at(nearer, vendor, kind); factor && nearer <= distance)
      widest = std::max(widest.value_or(kLeastFactor), *factor);
  return widest.value_or(std::exp(kNormalQuantile95 * kUnmeasuredLogSigma));
}

}  // namespace dculab::sim
