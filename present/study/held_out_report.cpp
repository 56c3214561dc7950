#include "present/study/held_out_report.hpp"

#include <string>
#include <utility>

#include "study/calibrate/held_out.hpp"

namespace dculab::present {

std::optional<std::vector<std::pair<std::string, sim::ErrorSummary>>> add_held_out_ops(
    const sim::HoldOutScore& score, const std::vector<TraceStep>& steps, Report& report) {
  const auto errors = study::held_out_op_errors(score, steps);
  if (errors.empty()) return std::nullopt;
  Table table;
  table.title = "Held-out steps, op by op: error = predicted / measured - 1";
  table.columns = {"op", "rows", "median |error|", "P90 |error|", "bias"};
  for (const auto& [op, error] : errors)
    table.rows.push_back({op, std::to_string(error.count), percent(error.median_abs_error),
                          percent(error.p90_abs_error), percent(error.bias)});
  report.tables.push_back(std::move(table));
  return std::vector<std::pair<std::string, sim::ErrorSummary>>(errors.begin(), errors.end());
}

std::optional<std::vector<BlockSizeRegret>> add_block_size_regret(const sim::HoldOutScore& score,
                                                                  const std::vector<TraceStep>& steps, Report& report) {
  Table table;
  table.title = "KV block size by prediction: what following it costs in measured time, over all steps";
  table.columns = {"KV heads", "predicted best", "measured best", "regret", "worst of single batches"};
  std::vector<BlockSizeRegret> reported;
  for (const auto& [kv_heads, regret] : study::block_size_regrets(score, steps)) {
    table.rows.push_back({std::to_string(kv_heads), std::to_string(regret.predicted_best.block_size),
                          std::to_string(regret.measured_best.block_size), percent(regret.regret),
                          percent(regret.worst_single)});
    reported.push_back({kv_heads, regret});
  }
  if (reported.empty()) return std::nullopt;
  report.tables.push_back(std::move(table));
  return reported;
}

}  // namespace dculab::present
