#include "sim/calibration/fit.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>

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

// What a measured time is compared with: a plan's step, or one of its ops.
struct Row {
  std::size_t plan = 0;
  std::size_t part = 0;  // 0 = the step, 1 + op
  double log_measured = 0;
  double weight = 0;  // 1 / sigma
};

// Rows of log(predicted / measured) / sigma. Steps that do the same work share a plan, which is priced once for all of
// them: a serving trace repeats its steps. Steps that took the same times, too, share their rows.
class StepRows {
 public:
  explicit StepRows(std::span<const TraceStep> steps) {
    std::unordered_multimap<std::int64_t, std::size_t> plan_of_context;  // candidates for equality
    std::vector<const TraceStep*> first;                                 // [plans]
    for (const TraceStep& step : steps) {
      const auto [begin, end] = plan_of_context.equal_range(context_tokens(step.batch));
      const auto same =
          std::find_if(begin, end, [&](const auto& entry) { return same_work(*first[entry.second], step); });
      count_rows(step, same == end ? plans_.size() : same->second);
      if (same != end) continue;
      plan_of_context.emplace(context_tokens(step.batch), plans_.size());
      first.push_back(&step);
      plans_.push_back(plan_step(step.model, step.options, step.batch));
    }
  }

  [[nodiscard]] std::vector<double> on(const Machine& machine) const {
    std::vector<std::vector<double>> log_predicted;  // [plans][1 + ops]
    StepPrice price;
    for (const StepPlan& plan : plans_) {
      price_step(machine, plan, price);
      std::vector<double>& logs = log_predicted.emplace_back();
      logs.push_back(std::log(price.seconds.value()));
      for (const OpPrice& op : price.ops) logs.push_back(std::log(op.all_executions().value()));
    }
    std::vector<double> result;
    result.reserve(rows_.size());
    for (const Row& row : rows_) result.push_back((log_predicted[row.plan][row.part] - row.log_measured) * row.weight);
    return result;
  }

  // [rows]: steps that share the row
  [[nodiscard]] const std::vector<double>& counts() const { return counts_; }

 private:
  [[nodiscard]] static std::int64_t context_tokens(const Batch& batch) {
    std::int64_t total = 0;
    for (const SequenceSlice& sequence : batch.sequences) total += sequence.context_tokens();
    return total;
  }
  [[nodiscard]] static bool same_work(const TraceStep& left, const TraceStep& right) {
    return left.batch == right.batch && left.options == right.options && left.model == right.model;
  }

  void count_rows(const TraceStep& step, std::size_t plan) {
    std::vector<double> times{static_cast<double>(plan), step.duration.value(), step.spread.value()};
    for (const Seconds op : step.op_durations) times.push_back(op.value());
    const auto [known, is_new] = rows_of_times_.emplace(std::move(times), std::pair(rows_.size(), std::size_t{0}));
    auto& [begin, end] = known->second;
    if (is_new) {
      add_rows(step, plan);
      end = rows_.size();
    }
    counts_.resize(rows_.size(), 0);
    for (std::size_t row = begin; row < end; ++row) ++counts_[row];
  }

  // The step's own row, then those of its visible ops.
  void add_rows(const TraceStep& step, std::size_t plan) {
    const double sigma = std::max(kLeastSigma, step.spread / step.duration);
    rows_.push_back({plan, 0, std::log(step.duration.value()), 1 / sigma});
    const double op_sigma = std::max(kOpSigma, sigma);
    for (std::size_t op = 0; op < step.op_durations.size(); ++op) {
      const double share = step.op_durations[op] / step.duration;
      if (share < kVisibleShare) continue;
      rows_.push_back({plan, 1 + op, std::log(step.op_durations[op].value()), std::sqrt(share) / op_sigma});
    }
  }

  std::vector<StepPlan> plans_;
  std::vector<Row> rows_;
  std::vector<double> counts_;  // [rows]
  // Where the rows begin and end of the steps with a plan and times.
  std::map<std::vector<double>, std::pair<std::size_t, std::size_t>> rows_of_times_;
};

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

// The least-squares problem: residuals as a function of the parameters' logarithms.
class FigureProblem {
 public:
  FigureProblem(const Machine& base, const ResidualRows& measured, std::span<const double> counts)
      : base_(base), measured_(measured), counts_(counts) {
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
    for (std::size_t index = 0; index < rows.size(); ++index)
      rows[index] = huber_residual(rows[index]) * (counts_.empty() ? 1 : std::sqrt(counts_[index]));
    for (std::size_t index = 0; index < parameters().size(); ++index)
      rows.push_back((logs[static_cast<Eigen::Index>(index)] - prior_[index]) / parameters()[index].log_sigma);
    return Eigen::Map<const Vector>(rows.data(), static_cast<Eigen::Index>(rows.size()));
  }

 private:
  const Machine& base_;
  const ResidualRows& measured_;
  std::span<const double> counts_;
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

Fit fit_residuals(const Machine& base, const ResidualRows& rows, std::span<const double> counts) {
  const FigureProblem problem(base, rows, counts);
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
  const StepRows rows(steps);
  Fit fit = fit_residuals(
      base, [&rows](const Machine& machine) { return rows.on(machine); }, rows.counts());
  fit.error = summarize_errors(compare_steps(fit.machine, steps));
  return fit;
}

}  // namespace dculab::sim
