// Least squares with normal priors over rows that jump: a simulated schedule changes by leaps when a step takes a
// little longer, so that neither slopes over a narrow step nor a search that trusts them get far.
//
//   minimise  sum over rows count * huber(residual(theta))^2 + sum over figures (theta / sigma)^2
//
// Gauss-Newton steps whose slopes are central differences, over a wide step first and ever narrower ones; of each step
// several lengths, and several dampings, are tried at once, and the best is kept if it gains.
#pragma once

#include <functional>
#include <vector>

namespace dculab::sim {

// The rows' residuals, in sigmas, at each of several thetas: always equally many, in the same order.
using ResidualsAt = std::function<std::vector<std::vector<double>>(const std::vector<std::vector<double>>& thetas)>;

struct JumpingFit {
  std::vector<double> theta;  // [figures]
  std::vector<double>
      deviations;  // one standard deviation of each, from the curvature; the prior's where no row depends
};

// `sigmas`: of the priors, [figures]; 0: held at 0. `counts`: measurements that a row stands for.
[[nodiscard]] JumpingFit fit_jumping_rows(const ResidualsAt& residuals_at, const std::vector<double>& sigmas,
                                          const std::vector<double>& counts);

}  // namespace dculab::sim
