#include "cli/validation/held_out_report.hpp"

#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "sim/cost/step_price.hpp"
#include "sim/study/recommend.hpp"

namespace dculab::cli {
namespace {

// What a step is measured on, whatever the KV heads and the block size: name of the model, KV dtype, lengths.
[[nodiscard]] std::string workload_of(const TraceStep& step) {
  std::string text = step.model.name + " " + std::string(name(step.options.kv_cache_dtype));
  for (const SequenceSlice& slice : step.batch.sequences)
    text += " " + std::to_string(slice.num_new_tokens) + "/" + std::to_string(slice.context_tokens());
  return text;
}

struct BlockSizeTimes {
  std::vector<sim::ChoiceTime> predicted, measured;
};

// By the number of KV heads.
[[nodiscard]] std::map<int, BlockSizeTimes> times_by_kv_heads(const sim::Machine& machine,
                                                              const std::vector<TraceStep>& steps) {
  const std::vector<sim::PredictedMeasured> pairs = sim::compare_steps(machine, steps);
  std::map<std::string, std::size_t> workloads;
  std::map<int, BlockSizeTimes> by_kv_heads;
  for (std::size_t row = 0; row < steps.size(); ++row) {
    const int kv_heads = steps[row].model.num_key_value_heads;
    const std::size_t workload = workloads.emplace(workload_of(steps[row]), workloads.size()).first->second;
    const sim::Choice choice{kv_heads, steps[row].options.block_size};
    by_kv_heads[kv_heads].predicted.push_back({choice, workload, pairs[row].predicted});
    by_kv_heads[kv_heads].measured.push_back({choice, workload, pairs[row].measured});
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
  for (const auto& [kv_heads, times] : times_by_kv_heads(score.fit.machine, steps)) {
    if (sim::rank_choices(times.measured).size() < 2) continue;
    const auto regret = sim::decision_regret(times.predicted, times.measured);
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
