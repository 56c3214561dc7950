#include "present/engine/step_trace_report.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "config/unit_text.hpp"
#include "core/kv/table.hpp"
#include "present/engine/expert_report.hpp"
#include "present/values/retention_json.hpp"

namespace dculab::present {
namespace {

[[nodiscard]] double tokens_per_second(const TraceStep& step) {
  return static_cast<double>(step.batch.num_tokens()) / step.duration.value();
}

[[nodiscard]] std::vector<Cell> step_cells(const TraceStep& step) {
  const SequenceSlice& slice = step.batch.sequences.front();
  const auto batch = static_cast<double>(step.batch.sequences.size());
  return {slice.phase == Phase::decode ? "decode" : "prefill",
          std::to_string(step.model.heads().num_key_value_heads),
          std::to_string(step.options.block_size),
          std::string(name(step.options.kv_cache_dtype)),
          std::to_string(slice.context_tokens()),
          Cell(number(batch), batch),
          Cell(config::short_text(step.duration), step.duration.value()),
          Cell(config::short_text(step.spread), step.spread.value()),
          Cell(number(tokens_per_second(step)), tokens_per_second(step))};
}

[[nodiscard]] Json step_json(const TraceStep& step) {
  const SequenceSlice& slice = step.batch.sequences.front();
  const bool decode = slice.phase == Phase::decode;
  return {{"id", step.id},
          {"phase", decode ? "decode" : "prefill"},
          {"num_key_value_heads", step.model.heads().num_key_value_heads},
          {"block_size", step.options.block_size},
          {"kv_cache_dtype", name(step.options.kv_cache_dtype)},
          {"context_tokens", slice.context_tokens()},
          {"batch", static_cast<double>(step.batch.sequences.size())},
          {"step_seconds", step.duration.value()},
          {"spread_seconds", step.spread.value()},
          {decode ? "decode_tokens_per_second" : "prefill_tokens_per_second", tokens_per_second(step)}};
}

}  // namespace

Report step_trace_report(const Trace& trace) {
  Report report{"dculab/bench/1", {}, {}, Json::object()};
  report.heading = {trace.header.device + ", " + trace.header.build, trace.header.timing};
  Table table;
  table.columns = {"phase", "KV heads", "block", "KV dtype", "context", "batch", "step", "± spread", "tokens/s"};
  const bool retains = std::ranges::any_of(
      trace.steps, [](const TraceStep& step) { return step.options.kv_retention.policy != RetentionPolicy::all; });
  if (retains) table.columns.emplace_back("KV kept");
  const bool mixture = std::ranges::any_of(trace.steps, [](const auto& step) { return !step.experts.is_empty(); });
  if (mixture) {
    report.heading.push_back(expert_heading());
    for (const std::string& column : expert_columns()) table.columns.push_back(column);
  }
  report.json["points"] = Json::array();
  for (const TraceStep& step : trace.steps) {
    table.rows.push_back(step_cells(step));
    report.json["points"].push_back(step_json(step));
    if (retains) {
      table.rows.back().emplace_back(retention_text(step.options.kv_retention));
      report.json["points"].back()["kv_retention"] = retention_json(step.options.kv_retention);
    }
    if (!mixture) continue;
    for (Cell& cell : expert_cells(step.experts)) table.rows.back().push_back(std::move(cell));
    report.json["points"].back()["experts"] = expert_json(step.experts);
  }
  report.tables.push_back(std::move(table));
  return report;
}

}  // namespace dculab::present
