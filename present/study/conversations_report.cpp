#include "present/study/conversations_report.hpp"

#include <algorithm>
#include <iterator>

#include "config/unit_text.hpp"
#include "core/activation_mode.hpp"
#include "present/engine/draft_report.hpp"
#include "present/engine/expert_report.hpp"
#include "present/study/serving_report.hpp"

namespace dculab::present {
namespace {

[[nodiscard]] Report empty_conversations_report(const study::ConversationQuestion& question,
                                                const study::ConversationAnswer& answer) {
  Report report{"dculab/bench-workload/1", {}, {}, Json::object()};
  const int replicas = question.replicas.replicas();
  const std::string engine = answer.device + (replicas > 1 ? " each" : "") + ", " + answer.build;
  report.heading = {replicas > 1 ? std::to_string(replicas) + " replicas on " + engine : engine};
  report.json["model"] = question.model;
  report.json["workload"] = question.file;
  report.json["activations"] = name(question.variants.front().options.engine.activations);
  report.json["arrival"] = "all_at_once";
  report.json["data_parallel_size"] = replicas;
  report.json["rows"] = Json::array();
  Table& table = report.tables.emplace_back();
  table.columns = {"KV dtype",   "block",    "requests",    "latency, sum", "latency, mean",
                   "requests/s", "tokens/s", "generated/s", "TTFT",         "TPOT"};
  table.notes = {"All requests arrive at once. tokens/s: prompts and answers; TTFT, TPOT: medians."};
  return report;
}

[[nodiscard]] std::vector<Cell> conversation_cells(const study::ServedConversations& row) {
  const study::ConversationFigures& figures = row.figures;
  const auto time = [](Seconds seconds) { return Cell(config::short_text(seconds), seconds.value()); };
  const auto rate = [](double value) { return Cell(number(value), value); };
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

[[nodiscard]] Json conversation_json(const study::ServedConversations& row) {
  const ServingReport& served = row.report;
  const study::ConversationFigures& figures = row.figures;
  Json json{{"kv_cache_dtype", row.kv_cache_dtype},
            {"block_size", row.block_size},
            {"requests", served.requests.size()},
            {"prompt_tokens", served.num_prompt_tokens},
            {"cached_prompt_tokens", served.num_cached_tokens},
            {"generated_tokens", served.num_generated_tokens},
            {"duration_seconds", served.duration.value()},
            {"steps", served.num_steps},
            {"preemptions", served.num_preemptions},
            {"latency_seconds_sum", figures.latency_sum.value()},
            {"latency_seconds_mean", figures.latency_mean.value()},
            {"all_requests_per_second", figures.requests_per_second},
            {"all_tokens_per_second", figures.tokens_per_second},
            {"generated_tokens_per_second", figures.generated_tokens_per_second},
            {"ttft_seconds_median", figures.ttft_median.value()},
            {"tpot_seconds_median", figures.tpot_median.value()}};
  add_skipped(served.num_padding_tokens, served.num_duplicate_tokens, json);
  return json;
}

// All rows draft, or none does.
void add_row_drafts(const ServingReport& served, Report& report) {
  Table& table = report.tables.front();
  if (table.rows.size() == 1) std::ranges::copy(draft_columns(), std::back_inserter(table.columns));
  const DraftFigures figures{.counts = served.drafts, .drafting = served.drafting, .verifying = served.executor_time};
  std::ranges::move(draft_cells(figures), std::back_inserter(table.rows.back()));
  report.json["rows"].back()["speculation"] = draft_json(figures);
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
  report.json["rows"].back()["experts"] = expert_json(experts);
}

}  // namespace

Report conversations_report(const study::ConversationQuestion& question, const study::ConversationAnswer& answer) {
  Report report = empty_conversations_report(question, answer);
  const bool drafts = question.variants.front().options.engine.speculative_config.enabled();
  for (const study::ServedConversations& row : answer.rows) {
    report.tables.front().rows.push_back(conversation_cells(row));
    report.json["rows"].push_back(conversation_json(row));
    if (drafts) add_row_drafts(row.report, report);
    add_row_experts(row.experts, report);
  }
  return report;
}

}  // namespace dculab::present
