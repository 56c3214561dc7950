#include "sim/calibration/fit.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "core/step_plan.hpp"
#include "sim/calibration/huber.hpp"
#include "sim/calibration/parameters.hpp"
#include "sim/cost/step_price.hpp"

namespace dculab::sim {
namespace {

constexpr double kLeastSigma = 0.01;     // no measurement here is better than 1 %
constexpr double kVisibleShare = 0.001;  // ops below this share of their step do not count on their own
constexpr double kOpSigma = 0.05;        // op times carry the timer's and the cache's disturbance
constexpr double kSmallestPrior = 1e-7;  // s, for times whose machine file says 0
constexpr int kFitIterations = 40;
// Slopes are taken over a wide step first: where another split of a product or another bound takes over, a price has a
// kink, at which slopes over a narrow one get stuck.
constexpr double kCoarseStep = 0.05;
constexpr double kFineStep = 1e-4;

// A measured step with its plan, made once.
struct Sample {
  const TraceStep* step;
  StepPlan plan;
};

// The step's own row, then those of its visible ops.
void add_rows(const Sample& sample, const StepPrice& price, std::vector<double>& rows) {
  const TraceStep& step = *sample.step;
  const double sigma = std::max(kLeastSigma, step.spread / step.duration);
  rows.push_back(std::log(price.seconds / step.duration) / sigma);
  const double op_sigma = std::max(kOpSigma, sigma);
  for (std::size_t op = 0; op < step.op_durations.size(); ++op) {
    const double share = step.op_durations[op] / step.duration;
    if (share < kVisibleShare) continue;
    rows.push_back(std::sqrt(share) * std::log(price.ops[op].all_executions() / step.op_durations[op]) / op_sigma);
  }
}

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

// The least-squares problem: residuals as a function of the parameters' logarithms.
class FigureProblem {
 public:
  FigureProblem(const Machine& base, const ResidualRows& measured) : base_(base), measured_(measured) {
    for (const Parameter& parameter : parameters()) {
      double value = get(base, parameter);
      if (value <= 0) value = kSmallestPrior;
      prior_.push_back(std::log(value));
    }
  }

  [[nodiscard]] Vector start() const {
    return Eigen::Map<const Vector>(prior_.data(), static_cast<Eigen::Index>(prior_.size()));
  }

  [[nodiscard]] Machine machine_at(const Vector& logs) const {
    Machine machine = base_;
    for (std::size_t index = 0; index < parameters().size(); ++index)
      set(machine, parameters()[index], std::exp(logs[static_cast<Eigen::Index>(index)]));
    return machine;
  }

  // The measurements' rows, then the priors.
  [[nodiscard]] Vector residuals(const Vector& logs) const {
    std::vector<double> rows = measured_(machine_at(logs));
    for (double& row : rows) row = huber_residual(row);
    for (std::size_t index = 0; index < parameters().size(); ++index)
      rows.push_back((logs[static_cast<Eigen::Index>(index)] - prior_[index]) / parameters()[index].log_sigma);
    return Eigen::Map<const Vector>(rows.data(), static_cast<Eigen::Index>(rows.size()));
  }

 private:
  const Machine& base_;
  const ResidualRows& measured_;
  std::vector<double> prior_;
};

[[nodiscard]] Matrix jacobian(const FigureProblem& problem, const Vector& at, const Vector& residuals, double step) {
  Matrix result(residuals.size(), at.size());
  for (Eigen::Index column = 0; column < at.size(); ++column) {
    Vector moved = at;
    moved[column] += step;
    result.col(column) = (problem.residuals(moved) - residuals) / step;
  }
  return result;
}

// Levenberg-Marquardt from `logs` on, slopes over `step`; returns the optimum and leaves J^T J there in `curvature`.
[[nodiscard]] Vector minimise(const FigureProblem& problem, Vector logs, double step, Matrix& curvature) {
  Vector residuals = problem.residuals(logs);
  double damping = 1e-2;
  for (int iteration = 0; iteration < kFitIterations; ++iteration) {
    const Matrix slope = jacobian(problem, logs, residuals, step);
    curvature = slope.transpose() * slope;
    Matrix damped = curvature;
    damped.diagonal() *= 1 + damping;
    const Vector candidate = logs - damped.ldlt().solve(slope.transpose() * residuals);
    const Vector next = problem.residuals(candidate);
    const double gain = residuals.squaredNorm() - next.squaredNorm();
    if (!(gain > 0)) {
      damping *= 10;
      if (damping > 1e8) break;
      continue;
    }
    logs = candidate;
    residuals = next;
    damping = std::max(damping / 5, 1e-9);
    if (gain < 1e-6 * residuals.squaredNorm()) break;
  }
  return logs;
}

}  // namespace

std::vector<PredictedMeasured> compare_steps(const Machine& machine, std::span<const TraceStep> steps) {
  std::vector<PredictedMeasured> pairs;
  StepPrice price;
  for (const TraceStep& step : steps) {
    price_step(machine, plan_step(step.model, step.options, step.batch), price);
    pairs.push_back({price.seconds, step.duration});
  }
  return pairs;
}

Fit fit_residuals(const Machine& base, const ResidualRows& rows) {
  const FigureProblem problem(base, rows);
  Matrix curvature;
  const Vector near = minimise(problem, problem.start(), kCoarseStep, curvature);
  const Vector logs = minimise(problem, near, kFineStep, curvature);
  Fit fit;
  fit.machine = problem.machine_at(logs);
  const Vector variance = curvature.inverse().diagonal();
  const Vector prior = problem.start();
  for (std::size_t index = 0; index < parameters().size(); ++index) {
    const Parameter& parameter = parameters()[index];
    if (!matters(base, parameter)) continue;
    const auto row = static_cast<Eigen::Index>(index);
    fit.parameters.push_back({std::string(parameter.key), std::exp(prior[row]), get(fit.machine, parameter),
                              std::sqrt(variance[row]), parameter.log_sigma});
  }
  return fit;
}

Fit fit_machine(const Machine& base, std::span<const TraceStep> steps) {
  std::vector<Sample> samples;
  for (const TraceStep& step : steps) samples.push_back({&step, plan_step(step.model, step.options, step.batch)});
  Fit fit = fit_residuals(base, [&samples](const Machine& machine) {
    std::vector<double> rows;
    StepPrice price;
    for (const Sample& sample : samples) {
      price_step(machine, sample.plan, price);
      add_rows(sample, price, rows);
    }
    return rows;
  });
  fit.error = summarize_errors(compare_steps(fit.machine, steps));
  return fit;
}

}  // namespace dculab::sim
