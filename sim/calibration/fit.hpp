// Fits the figures of parameters.hpp to measured steps.
//
// Minimises, over the logarithms of the parameters,
//
//   sum over rows   huber( log(predicted / measured) / sigma_row )^2  +  sum over parameters  (log(p / prior) /
//   sigma_p)^2
//
// A row is a measured step, or an op of it that takes a visible share of the step; sigma_row is the measurement's own
// spread, at least 1 %. Levenberg-Marquardt with a numeric Jacobian, of wide differences first and narrow ones
// then. A step's rows weigh alike however many ops it has.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/trace.hpp"
#include "sim/calibration/errors.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

// That a calibration asks for: fewer would leave the priors in charge.
inline constexpr std::size_t kFewestSteps = 8;

struct FittedParameter {
  std::string key;
  double prior = 0;
  double value = 0;
  // One standard deviation on the log scale. As large as the prior's: what was measured says nothing about this
  // parameter.
  double log_sigma = 0;
  double prior_log_sigma = 0;
  double highest = std::numeric_limits<double>::infinity();  // that it can be
  double added_unit = 0;                         // s; > 0: of a time that may be 0, deviations are in this unit
  std::optional<std::string> confounded_with{};  // the parameter that makes up for it best, in good part

  // How far the value is from the prior, on the log scale or in that unit.
  [[nodiscard]] double shift() const;
  // One standard deviation to either side of the value.
  [[nodiscard]] double low() const;
  [[nodiscard]] double high() const;
};

struct Fit {
  Machine machine;                          // the base with the fitted values
  std::vector<FittedParameter> parameters;  // those that matter on the machine
  ErrorSummary error;                       // of the steps it was fitted to
};

// Rows of log(predicted / measured) / sigma that a candidate machine gives; always equally many, in the same order.
using ResidualRows = std::function<std::vector<double>(const Machine&)>;

// Fits whatever the rows compare, a step or not; Fit::error stays empty. Huber's loss is applied here. `counts` says
// how many measurements each row stands for; empty: one each.
[[nodiscard]] Fit fit_residuals(const Machine& base, const ResidualRows& rows, std::span<const double> counts = {});

// Preconditions: no step violates a floor (see floor_check.hpp).
[[nodiscard]] Fit fit_machine(const Machine& base, std::span<const TraceStep> steps);

// Predicted and measured time of each step.
[[nodiscard]] std::vector<PredictedMeasured> compare_steps(const Machine& machine, std::span<const TraceStep> steps);

}  // namespace dculab::sim
