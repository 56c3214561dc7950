#include "present/measure/served_scenario_report.hpp"

#include <algorithm>
#include <optional>

#include "present/measure/served_workload_fields.hpp"
#include "present/output/field_csv.hpp"
#include "study/scenario/serving_scenario.hpp"

namespace dculab::present {
namespace {

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

}  // namespace

std::optional<HeadSetFigures> served_head_sets(const study::ServedSweepPoint& point) {
  if (!point.few_heads) return std::nullopt;
  return HeadSetFigures{.counts = point.served.head_sets,
                        .many = point.model.heads().num_key_value_heads,
                        .few = point.few_heads->model.heads().num_key_value_heads,
                        .few_weights = few_heads_footprint(point.model, *point.few_heads, point.options.weights)};
}

DraftFigures served_drafts(const engine::ServedWorkload& served) {
  return {.counts = served.drafts, .drafting = served.drafting, .verifying = served.busy};
}

Report served_scenario_report(const std::string& question, const study::ServedScenario& answer) {
  Report report = report_of("dculab/bench-scenario/1", ReportedServedScenario{answer}, {question});
  const TraceHeader& header = answer.points.front().header;
  report.heading.push_back(header.device + ", " + header.build);
  for (const study::ServedSweepPoint& point : answer.points) add_tables(point, report);
  return report;
}

}  // namespace dculab::present
