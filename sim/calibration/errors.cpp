#include "sim/calibration/errors.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace dculab::sim {

double quantile(std::span<const double> values, double q) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const double rank = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(rank);
  const auto above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (rank - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

ErrorSummary summarize_errors(std::span<const double> relative_errors) {
  ErrorSummary summary;
  if (relative_errors.empty()) return summary;
  std::vector<double> absolute;
  for (const double error : relative_errors) {
    absolute.push_back(std::abs(error));
    summary.bias += error / static_cast<double>(relative_errors.size());
  }
  summary.count = static_cast<int>(relative_errors.size());
  summary.median_abs_error = quantile(absolute, 0.5);
  summary.p90_abs_error = quantile(absolute, 0.9);
  return summary;
}

ErrorSummary summarize_errors(std::span<const PredictedMeasured> pairs) {
  std::vector<double> errors;
  for (const PredictedMeasured& pair : pairs) errors.push_back(pair.relative_error());
  return summarize_errors(std::span<const double>(errors));
}

double conformal_factor(std::span<const PredictedMeasured> held_out, double coverage) {
  if (held_out.empty()) return 1.0;
  std::vector<double> residuals;
  for (const PredictedMeasured& pair : held_out)
    residuals.push_back(std::abs(std::log(pair.predicted / pair.measured)));
  std::sort(residuals.begin(), residuals.end());
  const auto n = static_cast<double>(residuals.size());
  const auto rank = static_cast<std::size_t>(std::ceil((n + 1) * coverage));
  return std::exp(residuals[std::min(rank, residuals.size()) - 1]);
}

}  // namespace dculab::sim
