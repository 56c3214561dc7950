#include "present/measure/conversations_report.hpp"

#include <algorithm>
#include <iterator>

#include "config/unit_text.hpp"
#include "present/measure/served_workload_fields.hpp"
#include "present/output/field_csv.hpp"

namespace dculab::present {
namespace {

[[nodiscard]] Report empty_conversations_report(const study::ConversationQuestion& question,
                                                const study::ConversationAnswer& answer) {
  Report report = report_of("dculab/bench-workload/1", ReportedConversationAnswer{question, answer});
  const int replicas = question.replicas.replicas();
  const std::string engine = answer.device + (replicas > 1 ? " each" : "") + ", " + answer.build;
  report.heading = {replicas > 1 ? std::to_string(replicas) + " replicas on " + engine : engine};
  Table& table = report.tables.emplace_back();
  table.columns = {"KV dtype",   "block",    "requests",    "latency, sum", "latency, mean",
                   "requests/s", "tokens/s", "generated/s", "TTFT",         "TPOT"};
  table.notes = {"All requests arrive at once. tokens/s: prompts and answers; TTFT, TPOT: medians."};
  return report;
}

[[nodiscard]] Row conversation_cells(const study::ServedConversations& row) {
  const study::ConversationFigures& figures = row.figures;
  const auto time = [](Seconds seconds) { return config::short_text(seconds); };
  const auto rate = [](double value) { return number(value); };
  return {row.kv_cache_dtype,
          std::to_string(row.block_size),
          std::to_string(row.report.requests.size()),
          time(figures.latency_sum),
          time(figures.latency_mean),
          rate(figures.requests_per_second),
          rate(figures.tokens_per_second),
          rate(figures.generated_tokens_per_second),
          time(figures.ttft_median),
          time(figures.tpot_median)};
}

// All rows draft, or none does.
void add_row_drafts(const ServingReport& served, Report& report) {
  Table& table = report.tables.front();
  if (table.rows.size() == 1) std::ranges::copy(draft_columns(), std::back_inserter(table.columns));
  const DraftFigures figures{.counts = served.drafts, .drafting = served.drafting, .verifying = served.executor_time};
  std::ranges::move(draft_cells(figures), std::back_inserter(table.rows.back()));
}

// Of mixtures: all rows are of one model.
void add_row_experts(const ExpertHistogram& experts, Report& report) {
  if (experts.is_empty()) return;
  Table& table = report.tables.front();
  if (table.rows.size() == 1) {
    std::ranges::copy(expert_columns(), std::back_inserter(table.columns));
    report.heading.push_back(expert_heading());
  }
  std::ranges::move(expert_cells(experts), std::back_inserter(table.rows.back()));
}

}  // namespace

Report conversations_report(const study::ConversationQuestion& question, const study::ConversationAnswer& answer) {
  Report report = empty_conversations_report(question, answer);
  const bool drafts = question.variants.front().options.engine.speculative_config.enabled();
  for (const study::ServedConversations& row : answer.rows) {
    report.tables.front().rows.push_back(conversation_cells(row));
    if (drafts) add_row_drafts(row.report, report);
    add_row_experts(row.experts, report);
  }
  return report;
}

}  // namespace dculab::present
