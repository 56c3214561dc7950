#include "present/study/served_scenario_report.hpp"

#include <algorithm>
#include <optional>

#include "present/engine/draft_report.hpp"
#include "present/study/comparison_table.hpp"
#include "present/study/serving_report.hpp"
#include "study/decide/serving_figures.hpp"
#include "study/scenario/serving_scenario.hpp"

namespace dculab::present {
namespace {

[[nodiscard]] std::optional<HeadSetFigures> served_head_sets(const study::ServedSweepPoint& point) {
  if (!point.few_heads) return std::nullopt;
  return HeadSetFigures{.counts = point.served.head_sets,
                        .many = point.model.heads().num_key_value_heads,
                        .few = point.few_heads->model.heads().num_key_value_heads,
                        .few_weights = few_heads_footprint(point.model, *point.few_heads, point.options.weights)};
}

[[nodiscard]] DraftFigures served_drafts(const engine::ServedWorkload& served) {
  return {.counts = served.drafts, .drafting = served.drafting, .verifying = served.busy};
}

[[nodiscard]] int engines_of(const engine::ServedWorkload& served) {
  return std::max(1, static_cast<int>(served.replicas.size()));
}

// Lines above a point's latencies.
[[nodiscard]] std::string served_title(const study::ServedSweepPoint& point) {
  const engine::ServedWorkload& served = point.served;
  std::string title = study::choices_text(point.point);
  for (const std::string& line : throughput_lines(served.metrics, point.point.scenario.slo))
    title += (title.empty() ? "" : "\n") + line;
  title += "\n" + std::to_string(served.num_steps) + " steps, " + std::to_string(served.num_preemptions) +
           " preemptions, KV blocks used at most: " + std::to_string(served.timeline.most_used_blocks()) + " of " +
           std::to_string(std::int64_t{point.num_blocks} * engines_of(served));
  if (served.drafts.num_drafts > 0) title += "\n" + draft_summary(served_drafts(served));
  if (const auto head_sets = served_head_sets(point)) title += "\n" + head_set_line(*head_sets);
  return title;
}

void add_tables(const study::ServedSweepPoint& point, Report& report) {
  const engine::ServedWorkload& served = point.served;
  const int engines = engines_of(served);
  report.tables.push_back(latency_table(served.metrics));
  report.tables.back().title = served_title(point);
  if (engines > 1) report.tables.push_back(served_replica_table(served));
  report.tables.push_back(timeline_table(served.timeline, std::int64_t{point.num_blocks} * engines, engines));
}

[[nodiscard]] Json served_json(const study::ServedSweepPoint& point) {
  const engine::ServedWorkload& served = point.served;
  Json json{{"choices", choices_json(point.point.choices)}};
  json["requests"] = served.metrics.requests();
  json["prompt_tokens"] = served.metrics.prompt_tokens();
  json["cached_prompt_tokens"] = served.metrics.cached_tokens();
  add_skipped(served.metrics.padding_tokens(), served.metrics.duplicate_tokens(), json);
  for (const auto& [metric, figure] : study::compared_figures(served.metrics, served.num_steps)) json[metric] = figure;
  json["busy_seconds"] = served.busy.value();
  json["preemptions"] = served.num_preemptions;
  json["num_blocks"] = point.num_blocks;
  json["most_used_blocks"] = served.timeline.most_used_blocks();
  if (engines_of(served) > 1) json["replicas"] = served_replica_json(served);
  json["timeline"] = timeline_json(served.timeline);
  if (served.drafts.num_drafts > 0) json["speculation"] = draft_json(served_drafts(served));
  if (const auto head_sets = served_head_sets(point)) json["groups_by_load"] = head_set_json(*head_sets);
  return json;
}

}  // namespace

Report served_scenario_report(const std::string& question, const study::ServedScenario& answer) {
  Report report{"dculab/bench-scenario/1", {question}, {}, Json{{"runs", Json::array()}}};
  const TraceHeader& header = answer.points.front().header;
  report.heading.push_back(header.device + ", " + header.build);
  for (const study::ServedSweepPoint& point : answer.points) {
    add_tables(point, report);
    report.json["runs"].push_back(served_json(point));
  }
  return report;
}

}  // namespace dculab::present
