#include "cli/validation/held_out_report.hpp"

#include <map>
#include <string>
#include <utility>

#include "sim/cost/step_price.hpp"
#include "sim/study/measured_choices.hpp"

namespace dculab::cli {
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

}  // namespace

void add_held_out_ops(const sim::HoldOutScore& score, const std::vector<TraceStep>& steps, Report& report) {
  std::map<std::string, std::vector<sim::PredictedMeasured>> by_op;
  sim::StepPrice price;
  for (const std::size_t row : score.held_out) {
    const TraceStep& step = steps[row];
    sim::price_step(score.fit.machine, plan_step(step.model, step.options, step.batch), price);
    for (std::size_t op = 0; op < step.op_names.size(); ++op)
      if (step.op_durations[op].value() > 0)
        by_op[step.op_names[op]].push_back({price.ops[op].all_executions(), step.op_durations[op]});
  }
  if (by_op.empty()) return;
  Table table;
  table.title = "Held-out steps, op by op: error = predicted / measured - 1";
  table.columns = {"op", "rows", "median |error|", "P90 |error|", "bias"};
  for (const auto& [op, pairs] : by_op) {
    const sim::ErrorSummary error = sim::summarize_errors(pairs);
    table.rows.push_back(
        {op, Cell(std::to_string(error.count)), Cell(percent(error.median_abs_error), error.median_abs_error),
         Cell(percent(error.p90_abs_error), error.p90_abs_error), Cell(percent(error.bias), error.bias)});
    report.json["held_out_ops"][op] = {{"count", error.count},
                                       {"median_abs_error", error.median_abs_error},
                                       {"p90_abs_error", error.p90_abs_error},
                                       {"bias", error.bias}};
  }
  report.tables.push_back(std::move(table));
}

void add_block_size_regret(const sim::HoldOutScore& score, const std::vector<TraceStep>& steps, Report& report) {
  Table table;
  table.title = "KV block size by prediction: what following it costs in measured time, over all steps";
  table.columns = {"KV heads", "predicted best", "measured best", "regret", "worst of single batches"};
  for (const auto& [kv_heads, choices] : choices_by_kv_heads(score.fit.machine, steps)) {
    const auto regret = sim::decision_regret(choices);
    if (!regret) continue;
    table.rows.push_back({std::to_string(kv_heads), std::to_string(regret->predicted_best.block_size),
                          std::to_string(regret->measured_best.block_size),
                          Cell(percent(regret->regret), regret->regret),
                          Cell(percent(regret->worst_single), regret->worst_single)});
    report.json["regret"].push_back({{"num_key_value_heads", kv_heads},
                                     {"predicted_best_block_size", regret->predicted_best.block_size},
                                     {"measured_best_block_size", regret->measured_best.block_size},
                                     {"regret", regret->regret},
                                     {"worst_single_batch", regret->worst_single}});
  }
  if (!table.rows.empty()) report.tables.push_back(std::move(table));
}

}  // namespace dculab::cli
