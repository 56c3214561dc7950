// Least squares with normal priors over rows that jump: a simulated schedule changes by leaps when a step takes a
// little longer, so that neither slopes over a narrow step nor a search that trusts them get far.
//
//   minimise  sum over rows count * huber(residual(theta))^2 + sum over figures (theta / sigma)^2
//
// Gauss-Newton steps whose slopes are central differences, over a wide step first and ever narrower ones; of each step
// several lengths, and several dampings, are tried at once, and the best is kept if it gains. A step is straight in
// times, not in theta: a step's time is nearly a sum, so figures that make up for one another do so along a line there.
//
// How well a figure is known is walked, not read off the curvature, which leaps and the edges of bounds make too large:
// along the line on which the others make up for it best, until the loss has grown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace dculab::sim {

// The rows' residuals, in sigmas, at each of several thetas: always equally many, in the same order.
using ResidualsAt = std::function<std::vector<std::vector<double>>(const std::vector<std::vector<double>>& thetas)>;

// How a time goes with theta: by exp(-theta), of shares of a peak; by exp(theta), of times; by theta, of times that may
// be 0.
enum class TimeLaw : std::uint8_t { inverse, proportional, added };

struct JumpingFigure {
  double sigma = 0;  // of the prior; 0: held at 0
  TimeLaw law = TimeLaw::proportional;
};

struct KnownFigure {
  double theta = 0;
  double deviation = 0;  // one standard deviation; the prior's where no row depends on it
  // The figure that makes up for it best, where with the others held it would be known twice as well.
  std::optional<std::size_t> confounded_with{};
};

// `counts`: measurements that a row stands for. Returns one for each figure.
[[nodiscard]] std::vector<KnownFigure> fit_jumping_rows(const ResidualsAt& residuals_at,
                                                        const std::vector<JumpingFigure>& figures,
                                                        const std::vector<double>& counts);

}  // namespace dculab::sim
