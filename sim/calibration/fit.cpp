#include "sim/calibration/fit.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>

#include "model/plan_step.hpp"
#include "sim/calibration/crossed_effects.hpp"
#include "sim/calibration/parameters.hpp"
#include "sim/cost/step_price.hpp"

namespace dculab::sim {
namespace {

constexpr double kLeastSigma = 0.01;     // no measurement here is better than 1 %
constexpr double kVisibleShare = 0.001;  // ops below this share of their step do not count on their own
constexpr double kOpSigma = 0.05;        // op times carry the timer's and the cache's disturbance

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

// All rows see the same figures: slopes are one column of them after the other, backwards, so that shares which reach 1
// still have one.
[[nodiscard]] std::vector<RowSlope> rows_at(const Machine& base, const ResidualRows& measured,
                                            std::span<const double> counts, const std::vector<double>& theta,
                                            double step) {
  const std::vector<double> residuals = measured(with_factors(base, theta));
  std::vector<RowSlope> rows(residuals.size());
  for (std::size_t row = 0; row < rows.size(); ++row)
    rows[row] = {residuals[row], {}, counts.empty() ? 1 : counts[row]};
  if (step == 0) return rows;
  std::vector<double> moved = theta;
  for (std::size_t figure = 0; figure < theta.size(); ++figure) {
    moved[figure] -= step;
    const std::vector<double> before = measured(with_factors(base, moved));
    for (std::size_t row = 0; row < rows.size(); ++row)
      rows[row].slope.push_back((residuals[row] - before[row]) / step);
    moved[figure] = theta[figure];
  }
  return rows;
}

}  // namespace

double FittedParameter::shift() const {
  return added_unit > 0 ? (value - prior) / added_unit : std::log(value / prior);
}

double FittedParameter::low() const {
  return added_unit > 0 ? std::max(0.0, value - log_sigma * added_unit) : value * std::exp(-log_sigma);
}

double FittedParameter::high() const {
  return added_unit > 0 ? value + log_sigma * added_unit
                        : std::max(value, std::min(highest, value * std::exp(log_sigma)));
}

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
  const std::size_t count = rows(base).size();
  CrossedGroup figures{"figures", {}};
  for (const Parameter& parameter : parameters()) figures.sigma.push_back(parameter.log_sigma);
  const CrossedEffects effects({figures}, std::vector<std::vector<std::size_t>>(count, {0}),
                               [&](const std::vector<std::vector<double>>& thetas, double step) {
                                 return rows_at(base, rows, counts, thetas.front(), step);
                               });
  Fit fit;
  fit.machine = with_factors(base, effects.effects().at(figures.name));
  const std::vector<double> deviations = effects.deviations(0);
  for (std::size_t index = 0; index < parameters().size(); ++index) {
    const Parameter& parameter = parameters()[index];
    if (matters(base, parameter))
      fit.parameters.push_back({std::string(parameter.key), prior_of(base, parameter), get(fit.machine, parameter),
                                deviations[index], parameter.log_sigma, parameter.highest});
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
