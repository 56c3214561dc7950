#include "study/calibrate/held_out.hpp"

#include <algorithm>

#include "model/plan_step.hpp"
#include "sim/cost/step_price.hpp"

namespace dculab::study {
namespace {

// By the number of KV heads.
[[nodiscard]] std::map<int, sim::MeasuredChoices> choices_by_kv_heads(const sim::Machine& machine,
                                                                      const std::vector<TraceStep>& steps) {
  const sim::MeasuredChoices all = sim::measured_choices(machine, steps);
  std::map<int, sim::MeasuredChoices> by_kv_heads;
  for (std::size_t row = 0; row < steps.size(); ++row) {
    sim::MeasuredChoices& part = by_kv_heads[all.measured[row].choice.kv_heads];
    part.predicted.push_back(all.predicted[row]);
    part.measured.push_back(all.measured[row]);
  }
  return by_kv_heads;
}

[[nodiscard]] bool is_exchange(const Op& op) { return op.devices > 1; }

}  // namespace

std::map<std::string, sim::ErrorSummary> held_out_op_errors(const sim::HoldOutScore& score,
                                                            const std::vector<TraceStep>& steps) {
  std::map<std::string, std::vector<sim::PredictedMeasured>> by_op;
  sim::StepPrice price;
  for (const std::size_t row : score.held_out) {
    const TraceStep& step = steps[row];
    sim::price_step(score.fit.machine, plan_step(step.model, step.options, step.batch), price);
    for (std::size_t op = 0; op < step.op_names.size(); ++op)
      if (step.op_durations[op].value() > 0)
        by_op[step.op_names[op]].push_back({price.ops[op].all_executions(), step.op_durations[op]});
  }
  std::map<std::string, sim::ErrorSummary> errors;
  for (const auto& [op, pairs] : by_op) errors[op] = sim::summarize_errors(pairs);
  return errors;
}

std::map<int, sim::Regret> block_size_regrets(const sim::HoldOutScore& score, const std::vector<TraceStep>& steps) {
  std::map<int, sim::Regret> regrets;
  for (const auto& [kv_heads, choices] : choices_by_kv_heads(score.fit.machine, steps))
    if (const auto regret = sim::decision_regret(choices)) regrets[kv_heads] = *regret;
  return regrets;
}

std::optional<ExchangeTimes> exchange_times(const TraceStep& step, const sim::Machine& machine) {
  const StepPlan plan = plan_step(step.model, step.options, step.batch);
  if (std::ranges::none_of(plan.ops, is_exchange)) return std::nullopt;
  ExchangeTimes times{sim::exchange_time(sim::price_step(machine, plan)), {}};
  for (std::size_t op = 0; op < plan.ops.size(); ++op)
    if (is_exchange(plan.ops[op])) times.measured += step.op_durations[op];
  return times;
}

}  // namespace dculab::study
