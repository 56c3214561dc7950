#include "present/measure/step_trace_report.hpp"

#include <string>
#include <utility>
#include <vector>

#include "config/unit_text.hpp"
#include "core/kv/table.hpp"
#include "present/measure/step_trace_fields.hpp"
#include "present/output/field_csv.hpp"

namespace dculab::present {
namespace {

[[nodiscard]] Row step_cells(const ReportedStep& reported) {
  const TraceStep& step = reported.step;
  const SequenceSlice& slice = reported.slice();
  const auto batch = static_cast<double>(step.batch.sequences.size());
  const double rate = *reported.tokens_per_second(slice.phase);
  return {slice.phase == Phase::decode ? "decode" : "prefill",
          std::to_string(step.model.heads().num_key_value_heads),
          std::to_string(step.options.block_size),
          std::string(name(step.options.kv_cache_dtype)),
          std::to_string(slice.context_tokens()),
          number(batch),
          config::short_text(step.duration),
          config::short_text(step.spread),
          number(rate)};
}

}  // namespace

Report step_trace_report(const Trace& trace) {
  const ReportedTrace reported{trace};
  const std::vector<ReportedStep> steps = reported.steps();
  Report report = report_of("dculab/bench/1", reported);
  report.heading = {trace.header.device + ", " + trace.header.build, trace.header.timing};
  Table table;
  table.columns = {"phase", "KV heads", "block", "KV dtype", "context", "batch", "step", "± spread", "tokens/s"};
  if (!steps.empty() && steps.front().retains) table.columns.emplace_back("KV kept");
  if (!steps.empty() && steps.front().mixture) {
    report.heading.push_back(expert_heading());
    for (const std::string& column : expert_columns()) table.columns.push_back(column);
  }
  for (const ReportedStep& step : steps) {
    Row& row = table.rows.emplace_back(step_cells(step));
    if (step.retains) row.emplace_back(retention_text(step.step.options.kv_retention));
    if (!step.mixture) continue;
    for (std::string& cell : expert_cells(step.step.experts)) row.push_back(std::move(cell));
  }
  report.tables.push_back(std::move(table));
  return report;
}

}  // namespace dculab::present
