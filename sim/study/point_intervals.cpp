#include "sim/study/point_intervals.hpp"

#include <algorithm>
#include <cmath>

#include "sim/calibration/confidence.hpp"
#include "sim/calibration/hold_out.hpp"

namespace dculab::sim {
namespace {

constexpr double kUnmeasuredLogSigma = 0.5;  // where nothing at all was left out: an assumption
constexpr std::size_t kFewestRows = 10;      // whose 90 % quantile is one of them

[[nodiscard]] double conformal_factor(std::vector<double> errors) {
  const auto rank = static_cast<std::size_t>(std::ceil(kIntervalCoverage * static_cast<double>(errors.size() + 1)));
  const auto at = errors.begin() + static_cast<std::ptrdiff_t>(std::min(rank, errors.size()) - 1);
  std::ranges::nth_element(errors, at);
  return std::exp(*at);
}

}  // namespace

void IntervalTable::add(Distance distance, const std::string& vendor, PriceKind kind, double log_error) {
  errors_[{distance, kind}][vendor].push_back(std::abs(log_error));
}

std::optional<double> IntervalTable::median_error(Distance distance, const std::string& vendor) const {
  std::vector<double> all;
  for (const auto& [group, vendors] : errors_)
    if (const auto found = vendors.find(vendor); group.first == distance && found != vendors.end())
      all.insert(all.end(), found->second.begin(), found->second.end());
  if (all.empty()) return std::nullopt;
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::ranges::nth_element(all, middle);
  return std::exp(*middle) - 1;
}

std::optional<double> IntervalTable::factor_at(Distance distance, const std::string& vendor, PriceKind kind) const {
  std::vector<double> of_kind, of_all;
  for (const auto& [group, vendors] : errors_)
    for (const auto& [name, errors] : vendors) {
      if (group.first != distance) continue;
      if (group.second == kind && name == vendor && errors.size() >= kFewestRows) return conformal_factor(errors);
      if (group.second == kind) of_kind.insert(of_kind.end(), errors.begin(), errors.end());
      of_all.insert(of_all.end(), errors.begin(), errors.end());
    }
  if (of_kind.size() >= kFewestRows) return conformal_factor(std::move(of_kind));
  if (of_all.size() >= kFewestRows) return conformal_factor(std::move(of_all));
  return std::nullopt;
}

bool IntervalTable::has_seen(const std::string& vendor, PriceKind kind) const {
  const auto rows = errors_.find({Distance::source, kind});
  if (rows == errors_.end()) return false;
  const auto of_vendor = rows->second.find(vendor);
  return of_vendor != rows->second.end() && of_vendor->second.size() >= kFewestRows;
}

double IntervalTable::factor(Distance distance, const std::string& vendor, PriceKind kind) const {
  if (!has_seen(vendor, kind)) distance = Distance::vendor;
  std::optional<double> widest;
  for (const Distance nearer : kDistances)
    if (const auto factor = factor_at(nearer, vendor, kind); factor && nearer <= distance)
      widest = std::max(widest.value_or(kLeastFactor), *factor);
  return widest.value_or(std::exp(kNormalQuantile95 * kUnmeasuredLogSigma));
}

}  // namespace dculab::sim
