#include "present/study/held_out_report.hpp"

#include <string>
#include <utility>

#include "study/calibrate/held_out.hpp"
#include "study/validate/refused_steps.hpp"

namespace dculab::present {

void add_refusals(const std::vector<sim::FloorViolation>& violations, const Trace& trace, Report& report) {
  add_refusals(study::refusal_lines(violations, trace), report);
}

void add_refusals(const std::vector<std::string>& lines, Report& report) {
  if (!report.json.contains("refused")) report.json["refused"] = Json::array();
  for (const std::string& line : lines) {
    report.heading.push_back(line);
    report.json["refused"].push_back(line);
  }
}

void add_held_out_ops(const sim::HoldOutScore& score, const std::vector<TraceStep>& steps, Report& report) {
  const auto errors = study::held_out_op_errors(score, steps);
  if (errors.empty()) return;
  Table table;
  table.title = "Held-out steps, op by op: error = predicted / measured - 1";
  table.columns = {"op", "rows", "median |error|", "P90 |error|", "bias"};
  for (const auto& [op, error] : errors) {
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
  for (const auto& [kv_heads, regret] : study::block_size_regrets(score, steps)) {
    table.rows.push_back({std::to_string(kv_heads), std::to_string(regret.predicted_best.block_size),
                          std::to_string(regret.measured_best.block_size), Cell(percent(regret.regret), regret.regret),
                          Cell(percent(regret.worst_single), regret.worst_single)});
    report.json["regret"].push_back({{"num_key_value_heads", kv_heads},
                                     {"predicted_best_block_size", regret.predicted_best.block_size},
                                     {"measured_best_block_size", regret.measured_best.block_size},
                                     {"regret", regret.regret},
                                     {"worst_single_batch", regret.worst_single}});
  }
  if (!table.rows.empty()) report.tables.push_back(std::move(table));
}

}  // namespace dculab::present
