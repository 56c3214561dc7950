// How far predictions are from measurements, and what interval that justifies for the next prediction.
#pragma once

#include <span>

#include "core/units.hpp"

namespace dculab::sim {

struct PredictedMeasured {
  Seconds predicted;
  Seconds measured;

  // Positive: predicted too slow. 0.1 = 10 % of the measured time.
  [[nodiscard]] double relative_error() const { return predicted / measured - 1.0; }
};

struct ErrorSummary {
  int count = 0;
  double median_abs_error = 0;
  double p90_abs_error = 0;
  double bias = 0;  // mean relative error
};

[[nodiscard]] ErrorSummary summarize_errors(std::span<const PredictedMeasured> pairs);

// The same from predicted / measured - 1, for figures that are not times.
[[nodiscard]] ErrorSummary summarize_errors(std::span<const double> relative_errors);

// The q-quantile of `values` (sorted copy, linear between ranks). Precondition: not empty.
[[nodiscard]] double quantile(std::span<const double> values, double q);

// Split conformal prediction on the log scale: a factor f such that a new measurement lies in
// [prediction / f, prediction * f] with probability `coverage`, if it is exchangeable with the held-out pairs.
// The rank is ceil((n + 1) * coverage); with too few pairs for that the largest residual is taken.
// Source: Lei et al. 2018, "Distribution-free predictive inference for regression".
[[nodiscard]] double conformal_factor(std::span<const PredictedMeasured> held_out, double coverage);

}  // namespace dculab::sim
