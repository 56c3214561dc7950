#include "present/study/variants_report.hpp"

#include <string>
#include <utility>

#include "present/study/reported_table.hpp"
#include "present/study/service_tables.hpp"
#include "present/study/variant_text.hpp"
#include "present/values/leaning_report.hpp"
#include "present/values/verdict_text.hpp"
#include "study/scenario/axis_title.hpp"
#include "study/scenario/stacks.hpp"

namespace dculab::present {
namespace {

// " batch=4 partition=256", of the axes that are asked about or of the others.
[[nodiscard]] std::string axes_text(const std::vector<config::Override>& choices, bool asked) {
  std::string text;
  for (const config::Override& choice : choices)
    if (study::is_asked(choice) == asked) text += " " + study::axis_title(choice.first) + "=" + choice.second;
  return text;
}

// Notes of the variants' table, and the entries of `best` in JSON: machine, choices (of the sweep, as the choice has
// them), and costs_json of the variants, the baseline first.
void add_best_variants(const std::vector<study::BestVariant>& found, const std::string& machine, Table& table,
                       Json& best) {
  for (const study::BestVariant& each : found) {
    std::vector<study::Evaluated> quoted = each.evaluated;
    for (study::Evaluated& variant : quoted) variant.value = "'" + variant.value + "'";  // names have commas
    const std::string place = axes_text(each.choices, true), setting = axes_text(each.choices, false);
    table.notes.push_back("→ " + machine + (place.empty() ? "" : "," + place) + ": " +
                          quoted[each.verdict.chosen].value + (setting.empty() ? "" : " at" + setting) + "; " +
                          costs_text(quoted, each.verdict));
    best.push_back({{"machine", machine}, {"choices", choices_json(each.choices)}});
    best.back().update(costs_json(each.evaluated, each.verdict));
  }
}

void add_variant_rows(Table& table, const study::ComparedPoint& compared, const config::Compare& compare,
                      const std::string& metric) {
  const study::VariantCost& baseline = compared.costs.front();
  for (std::size_t index = 0; index < compared.costs.size(); ++index) {
    const study::VariantCost& cost = compared.costs[index];
    std::vector<Cell> row = axes_cells(*compared.point);
    row.emplace_back(index == 0 ? compare.baseline : compare.variants[index - 1].name);
    row.emplace_back(std::to_string(cost.batch) + (cost.batch_limit == "memory" ? " (memory)" : ""));
    const bool known = cost.fits();
    row.push_back(known ? Cell(figure_text(metric, cost.figures.at(metric)), cost.figures.at(metric)) : Cell("-"));
    const bool comparable = known && baseline.fits() && index > 0;
    row.push_back(comparable ? Cell(signed_percent(study::change_of(metric, cost, baseline)),
                                    study::change_of(metric, cost, baseline))
                             : Cell(""));
    row.emplace_back(largest_share(cost));
    row.emplace_back(percent(study::attention_share(cost), 2), study::attention_share(cost));
    table.rows.push_back(std::move(row));
  }
}

[[nodiscard]] Table variants_table(const std::vector<study::ComparedPoint>& points, const config::Scenario& scenario,
                                   const std::string& machine) {
  const std::string metric = study::main_metric(scenario);
  Table table;
  table.title = "Predicted on " + machine;
  table.columns = axes_columns(points);
  for (const char* column : {"variant", "batch", "", "change", "most of the time", "attention"})
    table.columns.emplace_back(column);
  table.columns[table.columns.size() - 4] = metric == "step_time" ? "step" : "output";
  for (const study::ComparedPoint& point : points) add_variant_rows(table, point, *scenario.compare, metric);
  const std::vector<config::Variant>& variants = scenario.compare->variants;
  for (std::size_t index = 0; index < variants.size(); ++index) {
    if (!variants[index].note.empty()) table.notes.push_back(variants[index].name + ": " + variants[index].note);
    const sim::Machine& runs = points.front().costs[index + 1].machine;
    if (!study::is_run_by(points.front().costs.front(), runs))
      table.notes.push_back(variants[index].name + ": on " + runs.name + ", " + study::whose_kernels(runs));
  }
  return table;
}

[[nodiscard]] Json compared_point_json(const study::ComparedPoint& compared,
                                       const std::vector<study::ReportedScore>& verdicts,
                                       const config::Compare& compare, const std::string& machine) {
  Json json{
      {"machine", machine}, {"choices", Json::object()}, {"variants", Json::array()}, {"reported", Json::array()}};
  for (const auto& [key, value] : compared.point->choices) json["choices"][key] = value;
  const study::VariantCost& baseline = compared.costs.front();
  for (std::size_t index = 0; index < compared.costs.size(); ++index) {
    Json entry{{"variant", index == 0 ? compare.baseline : compare.variants[index - 1].name}};
    entry.update(present::to_json(compared.costs[index]));
    if (index > 0 && baseline.fits() && compared.costs[index].fits())
      for (const auto& [metric, value] : baseline.figures)
        entry["change"][metric] = study::change_of(metric, compared.costs[index], baseline);
    json["variants"].push_back(std::move(entry));
  }
  for (const study::ReportedScore& verdict : verdicts)
    if (verdict.point == &compared) json["reported"].push_back(present::verdict_json(verdict));
  return json;
}

// Adds its choices to `best`.
void add_comparison(const config::Scenario& scenario, const study::Comparison& comparison, Json& best, Report& report) {
  const config::Compare& compare = *scenario.compare;
  const auto& [machine, points, scores, variants, leanings] = comparison;
  for (const study::ComparedPoint& point : points)
    for (const study::VariantCost& cost : point.costs) add_warnings(report, cost.refused);
  for (Table& table : reported_tables(scores, points, compare, machine.name)) report.tables.push_back(std::move(table));
  for (const study::ComparedPoint& point : points)
    if (point.costs.front().service) report.tables.push_back(pools_table(point.costs, compare, machine.name));
  report.tables.push_back(variants_table(points, scenario, machine.name));
  add_best_variants(variants, machine.name, report.tables.back(), best);
  report.json["leans_on"][machine.name] = add_leanings(machine, leanings, report);
  for (const study::ComparedPoint& point : points)
    report.json["comparisons"].push_back(compared_point_json(point, scores, compare, machine.name));
}

}  // namespace

void add_comparisons(const config::Scenario& scenario, const study::ComparisonStudy& study, Report& report) {
  for (const std::string& assumption : run_assumptions(scenario)) report.heading.push_back(assumption);
  for (const std::string& assumption : scenario.compare->assumptions)
    report.heading.push_back("assumed: " + assumption);
  report.json["comparisons"] = Json::array();
  Json best = Json::array();
  for (const study::Comparison& comparison : study.machines) add_comparison(scenario, comparison, best, report);
  if (!best.empty()) report.json["best"] = std::move(best);
}

}  // namespace dculab::present
