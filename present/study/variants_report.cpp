#include "present/study/variants_report.hpp"

#include <string>
#include <utility>

#include "present/output/field_csv.hpp"
#include "present/study/comparison_fields.hpp"
#include "present/study/reported_table.hpp"
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

// Notes of the variants' table. Returns what they say.
[[nodiscard]] std::vector<ReportedBestVariant> note_best_variants(const std::vector<study::BestVariant>& found,
                                                                  const std::string& machine, Table& table) {
  std::vector<ReportedBestVariant> reported;
  for (const study::BestVariant& each : found) {
    std::vector<study::Evaluated> quoted = each.evaluated;
    for (study::Evaluated& variant : quoted) variant.value = "'" + variant.value + "'";  // names have commas
    const std::string place = axes_text(each.choices, true), setting = axes_text(each.choices, false);
    table.notes.push_back("→ " + machine + (place.empty() ? "" : "," + place) + ": " +
                          quoted[each.verdict.chosen].value + (setting.empty() ? "" : " at" + setting) + "; " +
                          costs_text(quoted, each.verdict));
    reported.push_back({machine, each.choices, reported_costs(each.evaluated, each.verdict)});
  }
  return reported;
}

void add_variant_rows(Table& table, const study::ComparedPoint& compared, const config::Compare& compare,
                      const std::string& metric) {
  const study::VariantCost& baseline = compared.costs.front();
  for (std::size_t index = 0; index < compared.costs.size(); ++index) {
    const study::VariantCost& cost = compared.costs[index];
    Row row = axes_cells(*compared.point);
    row.emplace_back(index == 0 ? compare.baseline : compare.variants[index - 1].name);
    row.emplace_back(std::to_string(cost.batch) + (cost.batch_limit == "memory" ? " (memory)" : ""));
    const bool known = cost.fits();
    row.push_back(known ? figure_text(metric, cost.figures.at(metric)) : "-");
    const bool comparable = known && baseline.fits() && index > 0;
    row.push_back(comparable ? signed_percent(study::change_of(metric, cost, baseline)) : "");
    row.emplace_back(largest_share(cost));
    row.emplace_back(percent(study::attention_share(cost), 2));
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

void add_comparison(const config::Scenario& scenario, const study::Comparison& comparison, Report& report,
                    ReportedComparisons& reported) {
  const config::Compare& compare = *scenario.compare;
  const auto& [machine, points, scores, variants, input_sensitivities] = comparison;
  for (const study::ComparedPoint& point : points)
    for (const study::VariantCost& cost : point.costs) add_warnings(report, cost.refused);
  for (Table& table : reported_tables(scores, points, compare, machine.name)) report.tables.push_back(std::move(table));
  for (const study::ComparedPoint& point : points)
    if (point.costs.front().service) report.tables.push_back(pools_table(point.costs, compare, machine.name));
  report.tables.push_back(variants_table(points, scenario, machine.name));
  for (ReportedBestVariant& each : note_best_variants(variants, machine.name, report.tables.back())) {
    if (!reported.best) reported.best.emplace();
    reported.best->push_back(std::move(each));
  }
  if (!reported.input_sensitivity) reported.input_sensitivity.emplace();
  set_of_machine(*reported.input_sensitivity, machine.name, std::vector<ReportedInputSensitivity>{});
  if (input_sensitivities) {
    if (!reported.machine_facts) reported.machine_facts.emplace();
    set_of_machine(*reported.machine_facts, machine.name, machine_facts(machine));
    set_of_machine(*reported.input_sensitivity, machine.name,
                   note_input_sensitivities(machine, *input_sensitivities, report.tables.back()));
  }
  for (const study::ComparedPoint& point : points)
    reported.comparisons.push_back(ReportedComparedPoint{machine.name, point, scores, compare});
}

}  // namespace

void add_comparisons(const config::Scenario& scenario, const study::ComparisonStudy& study, Report& report) {
  for (const std::string& assumption : run_assumptions(scenario)) report.heading.push_back(assumption);
  for (const std::string& assumption : scenario.compare->assumptions)
    report.heading.push_back("assumed: " + assumption);
  ReportedComparisons reported;
  set_answer(reported, report);  // before the warnings
  for (const study::Comparison& comparison : study.machines) add_comparison(scenario, comparison, report, reported);
  set_answer(reported, report);
}

}  // namespace dculab::present
