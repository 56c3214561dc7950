#include "present/measure/served_study.hpp"

#include <string>
#include <utility>

#include "model/few_heads.hpp"
#include "present/measure/measured_serving_fields.hpp"
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
      percent(1 - group.machine.stack.reached.interference_free) + " of short steps' time");
}

// Where there are two sets of KV heads: who got which, there and here.
void add_head_set_lines(const study::ComparedPointServing& served, Report& report) {
  const auto sets = compared_head_sets(served);
  if (!sets) return;
  const std::string of = study::choices_text(*served.point), place = of.empty() ? "" : of + ": ";
  report.heading.push_back(place + "simulated: " + head_set_line(sets->simulated));
  report.heading.push_back(place + "measured in the last round: " + head_set_line(sets->measured));
}

// "12 ms .. 14 ms"
[[nodiscard]] std::string range_cell(const std::string& metric, double low, double high) {
  return figure_cell(metric, low) + " .. " + figure_cell(metric, high);
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

void add_served_metrics(const study::ComparedPointServing& served, Table& table) {
  for (const study::ComparedMetric& each : served.metrics) {
    Row row;
    for (const auto& [key, value] : served.point->choices) row.emplace_back(value);
    row.insert(row.end(),
               {each.metric, figure_cell(each.metric, each.simulated), range_cell(each.metric, each.low, each.high),
                figure_cell(each.metric, each.measured), (each.off() < 0 ? "" : "+") + percent(each.off(), 2),
                percent(each.limit), each.is_within() ? "yes" : "no"});
    row.push_back(range_cell(each.metric, each.lowest, each.highest));
    table.rows.push_back(std::move(row));
  }
}

void add_served_summary(const study::ServedStudy& study, int rounds, Table table, Report& report) {
  const ServedAgreement agreement = agreement_of(study);
  const std::string of_all = " of " + std::to_string(agreement.compared);
  table.notes = {"The median of " + std::to_string(rounds) + " rounds, metric by metric",
                 std::to_string(agreement.within) + of_all + " within their limits, " +
                     std::to_string(agreement.inside) + of_all +
                     " inside their intervals: what the steps' 90 % interval, all steps wrong alike, makes of them"};
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

std::optional<ComparedHeadSets> compared_head_sets(const study::ComparedPointServing& served) {
  const auto& few = served.server.few_heads;
  if (!few) return std::nullopt;
  const ModelShape& many = served.server.model;
  HeadSetFigures figures{.counts = served.simulated_head_sets,
                         .many = many.heads().num_key_value_heads,
                         .few = few->model.heads().num_key_value_heads,
                         .few_weights = few_heads_footprint(many, *few, served.server.options.weights)};
  ComparedHeadSets sets{figures, figures};
  sets.measured.counts = served.last.head_sets;
  return sets;
}

ServedAgreement agreement_of(const study::ServedStudy& found) {
  ServedAgreement agreement;
  for (const study::ServedGroup& group : found.groups)
    for (const study::ComparedPointServing& served : group.points)
      for (const study::ComparedMetric& each : served.metrics) {
        agreement.within += each.is_within() ? 1 : 0;
        agreement.inside += each.is_inside() ? 1 : 0;
        ++agreement.compared;
      }
  return agreement;
}

void add_served_study(const study::ServedStudy& found, const config::SweepPoint& first, int rounds, Report& report) {
  Table table = empty_served_table(first);
  for (const study::ServedGroup& group : found.groups) {
    add_served_fit(group, report);
    for (const study::ComparedPointServing& served : group.points) {
      add_served_metrics(served, table);
      add_head_set_lines(served, report);
    }
  }
  add_served_summary(found, rounds, std::move(table), report);
  for (const study::ServedGroup& group : found.groups) add_served_replicas(group, report);
}

}  // namespace dculab::present
