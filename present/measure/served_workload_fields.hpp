// The fields of requests that this machine's engine served: `dculab bench --workload`, of conversations or a scenario.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/activation_mode.hpp"
#include "present/measure/served_replicas.hpp"
#include "present/study/comparison_table.hpp"
#include "present/study/metric_text.hpp"
#include "present/study/serving_report.hpp"
#include "present/values/draft_report.hpp"
#include "present/values/expert_report.hpp"
#include "study/evaluate/serving_figures.hpp"
#include "study/measure/served_conversations.hpp"
#include "study/measure/served_scenario.hpp"

namespace dculab::present {

// The conversations with one variant.
struct ReportedConversations {
  const study::ServedConversations& row;
  bool drafts = false;
};

struct ReportedConversationAnswer {
  const study::ConversationQuestion& question;
  const study::ConversationAnswer& answer;

  [[nodiscard]] const EngineOptions& first_options() const { return question.variants.front().options.engine; }
};

struct ReportedServedScenario {
  const study::ServedScenario& answer;
};

[[nodiscard]] std::optional<HeadSetFigures> served_head_sets(const study::ServedSweepPoint& point);
[[nodiscard]] DraftFigures served_drafts(const engine::ServedWorkload& served);

// A count that is reported only where it is not 0.
[[nodiscard]] inline std::optional<std::int64_t> some_tokens(std::int64_t count) {
  return when(count > 0, [count] { return count; });
}

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ReportedConversations> {
  using Self = present::ReportedConversations;
  static constexpr std::string_view id = "served_conversations";
  static constexpr std::string_view doc = "Conversations with one variant. Rates are over the whole duration.";
  static constexpr auto fields = std::tuple(
      field("kv_cache_dtype", "as it was asked for", [](const Self& reported) { return reported.row.kv_cache_dtype; }),
      field("block_size", "of the KV cache", unit::tokens,
            [](const Self& reported) { return reported.row.block_size; }),
      field("requests", "that were served", unit::count,
            [](const Self& reported) { return reported.row.report.requests.size(); }),
      field("prompt_tokens", "of all requests", unit::tokens,
            [](const Self& reported) { return reported.row.report.num_prompt_tokens; }),
      field("cached_prompt_tokens", "of these, found by prefix caching", unit::tokens,
            [](const Self& reported) { return reported.row.report.num_cached_tokens; }),
      field("generated_tokens", "of answers", unit::tokens,
            [](const Self& reported) { return reported.row.report.num_generated_tokens; }),
      field("duration_seconds", "from the first arrival to the last token",
            [](const Self& reported) { return reported.row.report.duration; }),
      field("steps", "of the model", unit::count, [](const Self& reported) { return reported.row.report.num_steps; }),
      field("preemptions", "of running requests", unit::count,
            [](const Self& reported) { return reported.row.report.num_preemptions; }),
      field("latency_seconds_sum", "of all requests, from arrival to last token",
            [](const Self& reported) { return reported.row.figures.latency_sum; }),
      field("latency_seconds_mean", "of a request",
            [](const Self& reported) { return reported.row.figures.latency_mean; }),
      field("all_requests_per_second", "that end", unit::requests_per_second,
            [](const Self& reported) { return reported.row.figures.requests_per_second; }),
      field("all_tokens_per_second", "of prompts and answers", unit::tokens_per_second,
            [](const Self& reported) { return reported.row.figures.tokens_per_second; }),
      field("generated_tokens_per_second", "of answers", unit::tokens_per_second,
            [](const Self& reported) { return reported.row.figures.generated_tokens_per_second; }),
      field("ttft_seconds_median", "time to first token",
            [](const Self& reported) { return reported.row.figures.ttft_median; }),
      field("tpot_seconds_median", "time per output token",
            [](const Self& reported) { return reported.row.figures.tpot_median; }),
      field("skipped_padding_tokens", "of padding, whose K and V were not written", unit::tokens,
            [](const Self& reported) { return present::some_tokens(reported.row.report.num_padding_tokens); }),
      field("skipped_duplicate_tokens", "of prompts that another request had, whose K and V were not written",
            unit::tokens,
            [](const Self& reported) { return present::some_tokens(reported.row.report.num_duplicate_tokens); }),
      field("speculation", "where the engine drafts",
            [](const Self& reported) {
              const ServingReport& served = reported.row.report;
              return when(reported.drafts, [&] {
                return present::DraftFigures{
                    .counts = served.drafts, .drafting = served.drafting, .verifying = served.executor_time};
              });
            }),
      field("experts", "of a mixture", [](const Self& reported) {
        return when(!reported.row.experts.is_empty(), [&] { return reported.row.experts; });
      }));
};

template <>
struct FieldList<present::ReportedConversationAnswer> {
  using Self = present::ReportedConversationAnswer;
  static constexpr std::string_view id = "conversations";
  static constexpr std::string_view doc = "Conversations that this machine's engine served, variant by variant.";
  static constexpr std::string_view csv_rows = "rows";

  [[nodiscard]] static std::vector<present::ReportedConversations> rows(const Self& reported) {
    const bool drafts = reported.first_options().speculative_config.enabled();
    std::vector<present::ReportedConversations> rows;
    for (const study::ServedConversations& row : reported.answer.rows) rows.push_back({row, drafts});
    return rows;
  }

  static constexpr auto fields =
      std::tuple(field("model", "as it was asked for", [](const Self& reported) { return reported.question.model; }),
                 field("workload", "the file", [](const Self& reported) { return reported.question.file; }),
                 field("activations", "in products with quantized weights", names_up_to<ActivationMode::fp8>(),
                       [](const Self& reported) { return name(reported.first_options().activations); }),
                 field("arrival", "of the requests", one_of("all_at_once"), [](const Self&) { return "all_at_once"; }),
                 field("data_parallel_size", "replicas", unit::count,
                       [](const Self& reported) { return reported.question.replicas.replicas(); }),
                 field("rows", "a variant each", &rows));
};

template <>
struct FieldList<study::ServedSweepPoint> {
  using Point = study::ServedSweepPoint;
  static constexpr std::string_view id = "served_point";
  static constexpr std::string_view doc = "Requests that this machine's engine served, at a point of the sweep.";

  [[nodiscard]] static std::vector<DataKey> figure_keys() {
    std::vector<DataKey> keys = present::metric_keys();
    keys.push_back({"output_tokens", std::string(unit::tokens), "of answers"});
    keys.push_back({"steps", std::string(unit::count), "of the model"});
    return keys;
  }

  static constexpr auto fields = std::tuple(
      field("choices", "keys of the scenario and their values", [](const Point& each) { return each.point.choices; }),
      field("requests", "that were served", unit::count,
            [](const Point& each) { return each.served.metrics.requests(); }),
      field("prompt_tokens", "of all requests", unit::tokens,
            [](const Point& each) { return each.served.metrics.prompt_tokens(); }),
      field("cached_prompt_tokens", "of these, found by prefix caching", unit::tokens,
            [](const Point& each) { return each.served.metrics.cached_tokens(); }),
      field("skipped_padding_tokens", "of padding, whose K and V were not written", unit::tokens,
            [](const Point& each) { return present::some_tokens(each.served.metrics.padding_tokens()); }),
      field("skipped_duplicate_tokens", "of prompts that another request had, whose K and V were not written",
            unit::tokens,
            [](const Point& each) { return present::some_tokens(each.served.metrics.duplicate_tokens()); }),
      keyed(&figure_keys,
            [](const Point& each) { return study::compared_figures(each.served.metrics, each.served.num_steps); }),
      field("busy_seconds", "sum of the steps", [](const Point& each) { return each.served.busy; }),
      field("preemptions", "of running requests", unit::count,
            [](const Point& each) { return each.served.num_preemptions; }),
      field("num_blocks", "KV blocks of a replica", unit::count, &Point::num_blocks),
      field("most_used_blocks", "of all replicas, at one time", unit::count,
            [](const Point& each) { return each.served.timeline.most_used_blocks(); }),
      field("replicas", "where there are several",
            [](const Point& each) {
              return when(each.served.replicas.size() > 1, [&] { return present::served_replicas(each.served); });
            }),
      field("timeline", "parts of the run, in order",
            [](const Point& each) { return each.served.timeline.intervals(); }),
      field("speculation", "where something was drafted",
            [](const Point& each) {
              return when(each.served.drafts.num_drafts > 0, [&] { return present::served_drafts(each.served); });
            }),
      field("groups_by_load", "of a server with two sets of KV heads",
            [](const Point& each) { return present::served_head_sets(each); }));
};

template <>
struct FieldList<present::ReportedServedScenario> {
  using Self = present::ReportedServedScenario;
  static constexpr std::string_view id = "served_scenario";
  static constexpr std::string_view doc = "A scenario's requests, served by this machine's engine.";
  static constexpr std::string_view csv_rows = "runs";
  static constexpr auto fields = std::tuple(field(
      "runs", "points of the sweep",
      [](const Self& reported) -> const std::vector<study::ServedSweepPoint>& { return reported.answer.points; }));
};

}  // namespace dculab
