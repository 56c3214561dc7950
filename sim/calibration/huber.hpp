// Huber's loss (1964), which grows with the square of a small residual and linearly with a large one, so that one
// wild measurement does not carry a fit. Residuals are in sigmas.
#pragma once

#include <cmath>

namespace dculab::sim {

inline constexpr double kHuberThreshold = 2.0;  // in sigmas

[[nodiscard]] inline double huber_loss(double residual) {
  const double size = std::abs(residual);
  return size <= kHuberThreshold ? size * size : kHuberThreshold * (2 * size - kHuberThreshold);
}

// The weight that makes the loss an ordinary square.
[[nodiscard]] inline double huber_weight(double residual) {
  const double size = std::abs(residual);
  return size <= kHuberThreshold ? 1 : kHuberThreshold / size;
}

// The residual whose ordinary square is the loss.
[[nodiscard]] inline double huber_residual(double residual) {
  if (std::abs(residual) <= kHuberThreshold) return residual;
  return std::copysign(std::sqrt(huber_loss(residual)), residual);
}

// How that residual changes with `residual`.
[[nodiscard]] inline double huber_slope(double residual) {
  return std::abs(residual) <= kHuberThreshold ? 1 : kHuberThreshold / std::sqrt(huber_loss(residual));
}

}  // namespace dculab::sim
