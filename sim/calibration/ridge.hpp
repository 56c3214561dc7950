// Linear least squares with normal priors, "ridge regression" (Hoerl and Kennard 1970).
#pragma once

#include <span>
#include <vector>

namespace dculab::sim {

// An error that is `error` at x = 0 and grows by slope . x, in units of `sigma`.
struct LinearRow {
  double error = 0;
  std::vector<double> slope;  // one for each x
  double sigma = 1;           // > 0
};

// The x that minimises sum over rows of ((error + slope . x) / sigma)^2 + sum over x of (x / prior)^2.
// Precondition: priors > 0, one for each x.
[[nodiscard]] std::vector<double> ridge(std::span<const LinearRow> rows, std::span<const double> priors);

}  // namespace dculab::sim
