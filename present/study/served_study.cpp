#include "present/study/served_study.hpp"

#include <string>
#include <utility>

#include "model/few_heads.hpp"
#include "present/study/comparison_table.hpp"
#include "present/study/serving_report.hpp"
#include "study/scenario/axis_title.hpp"
#include "study/scenario/serving_scenario.hpp"

namespace dculab::present {
namespace {

void add_served_fit(const study::ServedGroup& group, Report& report) {
  const std::string of = group.replicas == 1 ? "" : std::to_string(group.replicas) + " replicas, each on its share: ";
  report.heading.push_back(
      of + "calibrated on " + std::to_string(group.num_steps) +
      " steps of other requests at the same rates: median |error| " + percent(group.fit_error.median_abs_error) +
      ", P90 " + percent(group.fit_error.p90_abs_error) + ", bias " + percent(group.fit_error.bias) + "; pauses take " +
      percent(1 - group.machine.stack.reached.undisturbed) + " of short steps' time");
}

// Where there are two sets of KV heads: who got which, there and here.
void add_head_sets(const study::ComparedPointServing& served, Json& json, Report& report) {
  const auto& few = served.server.few_heads;
  if (!few) return;
  const ModelShape& many = served.server.model;
  HeadSetFigures figures{.counts = served.simulated_head_sets,
                         .many = many.heads().num_key_value_heads,
                         .few = few->model.heads().num_key_value_heads,
                         .few_weights = few_heads_footprint(many, *few, served.server.options.weights)};
  const std::string of = study::choices_text(*served.point);
  report.heading.push_back((of.empty() ? "" : of + ": ") + "simulated: " + head_set_line(figures));
  json["groups_by_load"]["simulated"] = head_set_json(figures);
  figures.counts = served.last.head_sets;
  report.heading.push_back((of.empty() ? "" : of + ": ") + "measured in the last round: " + head_set_line(figures));
  json["groups_by_load"]["measured"] = head_set_json(figures);
}

// "12 ms .. 14 ms"
[[nodiscard]] Cell range_cell(const std::string& metric, double low, double high) {
  return {figure_cell(metric, low).text + " .. " + figure_cell(metric, high).text};
}

[[nodiscard]] Table empty_served_table(const config::SweepPoint& first) {
  Table table;
  table.title = "Simulated against measured on this machine";
  for (const auto& [key, value] : first.choices) table.columns.push_back(study::axis_title(key));
  for (const char* column :
       {"metric", "simulated", "90 % interval", "measured", "off by", "limit", "within", "all rounds measured"})
    table.columns.emplace_back(column);
  return table;
}

void add_served_metrics(const study::ComparedPointServing& served, Table& table, Json& json) {
  for (const study::ComparedMetric& each : served.metrics) {
    std::vector<Cell> row;
    for (const auto& [key, value] : served.point->choices) row.emplace_back(value);
    row.insert(row.end(), {each.metric, figure_cell(each.metric, each.simulated),
                           range_cell(each.metric, each.low, each.high), figure_cell(each.metric, each.measured),
                           Cell((each.off() < 0 ? "" : "+") + percent(each.off(), 2), each.off()),
                           Cell(percent(each.limit), each.limit), each.is_within() ? "yes" : "no"});
    row.push_back(range_cell(each.metric, each.lowest, each.highest));
    table.rows.push_back(std::move(row));
    json[each.metric] = {{"simulated", each.simulated},
                         {"interval", {each.low, each.high}},
                         {"measured", each.measured},
                         {"limit", each.limit},
                         {"within", each.is_within()}};
  }
}

void add_served_point(const study::ComparedPointServing& served, Table& table, Report& report) {
  Json json{{"choices", choices_json(served.point->choices)}, {"metrics", Json::object()}};
  add_served_metrics(served, table, json["metrics"]);
  if (!served.last.replicas.empty()) json["replicas"] = served_replica_json(served.last);
  add_head_sets(served, json, report);
  report.json["points"].push_back(std::move(json));
}

void add_served_summary(const study::ServedStudy& study, int rounds, Table table, Report& report) {
  int within = 0, inside = 0;
  for (const study::ServedGroup& group : study.groups)
    for (const study::ComparedPointServing& served : group.points)
      for (const study::ComparedMetric& each : served.metrics) {
        within += each.is_within() ? 1 : 0;
        inside += each.is_inside() ? 1 : 0;
      }
  const std::string of_all = " of " + std::to_string(table.rows.size());
  table.notes = {"The median of " + std::to_string(rounds) + " rounds, metric by metric",
                 std::to_string(within) + of_all + " within their limits, " + std::to_string(inside) + of_all +
                     " inside their intervals: what the steps' 90 % interval, all steps wrong alike, makes of them"};
  report.json["within"] = within;
  report.json["inside_interval"] = inside;
  report.json["compared"] = table.rows.size();
  report.tables.push_back(std::move(table));
}

void add_served_replicas(const study::ServedGroup& group, Report& report) {
  if (group.replicas == 1) return;
  for (const study::ComparedPointServing& served : group.points) {
    report.tables.push_back(served_replica_table(served.last));
    const std::string of = study::choices_text(*served.point);
    report.tables.back().title = "Replicas, measured in the last round" + (of.empty() ? "" : ": " + of);
  }
}

}  // namespace

void add_served_study(const study::ServedStudy& found, const config::SweepPoint& first, int rounds, Report& report) {
  report.json["points"] = Json::array();
  Table table = empty_served_table(first);
  for (const study::ServedGroup& group : found.groups) {
    add_served_fit(group, report);
    for (const study::ComparedPointServing& served : group.points) add_served_point(served, table, report);
  }
  add_served_summary(found, rounds, std::move(table), report);
  for (const study::ServedGroup& group : found.groups) add_served_replicas(group, report);
}

}  // namespace dculab::present
