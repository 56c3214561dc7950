#include "present/measure/step_trace_report.hpp"

#include <string>
#include <utility>
#include <vector>

#include "config/unit_text.hpp"
#include "core/kv/table.hpp"
#include "present/measure/step_trace_fields.hpp"

namespace dculab::present {
namespace {

[[nodiscard]] std::vector<Cell> step_cells(const ToldStep& told) {
  const TraceStep& step = told.step;
  const SequenceSlice& slice = told.slice();
  const auto batch = static_cast<double>(step.batch.sequences.size());
  const double rate = *told.tokens_per_second(slice.phase);
  return {slice.phase == Phase::decode ? "decode" : "prefill",
          std::to_string(step.model.heads().num_key_value_heads),
          std::to_string(step.options.block_size),
          std::string(name(step.options.kv_cache_dtype)),
          std::to_string(slice.context_tokens()),
          Cell(number(batch), batch),
          Cell(config::short_text(step.duration), step.duration.value()),
          Cell(config::short_text(step.spread), step.spread.value()),
          Cell(number(rate), rate)};
}

}  // namespace

Report step_trace_report(const Trace& trace) {
  const ToldTrace told{trace};
  const std::vector<ToldStep> steps = told.steps();
  Report report{"dculab/bench/1", {}, {}, json_of(told)};
  report.heading = {trace.header.device + ", " + trace.header.build, trace.header.timing};
  Table table;
  table.columns = {"phase", "KV heads", "block", "KV dtype", "context", "batch", "step", "± spread", "tokens/s"};
  if (!steps.empty() && steps.front().retains) table.columns.emplace_back("KV kept");
  if (!steps.empty() && steps.front().mixture) {
    report.heading.push_back(expert_heading());
    for (const std::string& column : expert_columns()) table.columns.push_back(column);
  }
  for (const ToldStep& step : steps) {
    std::vector<Cell>& row = table.rows.emplace_back(step_cells(step));
    if (step.retains) row.emplace_back(retention_text(step.step.options.kv_retention));
    if (!step.mixture) continue;
    for (Cell& cell : expert_cells(step.step.experts)) row.push_back(std::move(cell));
  }
  report.tables.push_back(std::move(table));
  return report;
}

}  // namespace dculab::present
