#include "cli/study/compared_study.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "present/study/reported_table.hpp"
#include "present/study/service_tables.hpp"
#include "present/study/variant_text.hpp"
#include "present/values/leaning_report.hpp"
#include "present/values/verdict_text.hpp"
#include "study/decide/best_variants.hpp"
#include "study/evaluate/compared_points.hpp"
#include "study/scenario/axis_title.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/stacks.hpp"

namespace dculab::cli {
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
void add_best_variants(const std::vector<study::BestVariant>& found, const std::string& machine, present::Table& table,
                       present::Json& best) {
  for (const study::BestVariant& each : found) {
    std::vector<study::Evaluated> quoted = each.evaluated;
    for (study::Evaluated& variant : quoted) variant.value = "'" + variant.value + "'";  // names have commas
    const std::string place = axes_text(each.choices, true), setting = axes_text(each.choices, false);
    table.notes.push_back("→ " + machine + (place.empty() ? "" : "," + place) + ": " +
                          quoted[each.verdict.chosen].value + (setting.empty() ? "" : " at" + setting) + "; " +
                          present::costs_text(quoted, each.verdict));
    best.push_back({{"machine", machine}, {"choices", present::choices_json(each.choices)}});
    best.back().update(present::costs_json(each.evaluated, each.verdict));
  }
}

// Of all that fits and runs there.
[[nodiscard]] std::vector<const sim::Recipe*> recipes_of(const std::vector<study::ComparedPoint>& points,
                                                         const sim::Machine& machine) {
  std::vector<const sim::Recipe*> recipes;
  for (const study::ComparedPoint& point : points)
    for (const study::VariantCost& cost : point.costs)
      if (cost.fits() && study::is_run_by(cost, machine)) recipes.push_back(&cost.recipe);
  return recipes;
}

void add_variant_rows(present::Table& table, const study::ComparedPoint& compared, const config::Compare& compare,
                      const std::string& metric) {
  const study::VariantCost& baseline = compared.costs.front();
  for (std::size_t index = 0; index < compared.costs.size(); ++index) {
    const study::VariantCost& cost = compared.costs[index];
    std::vector<present::Cell> row = present::axes_cells(*compared.point);
    row.emplace_back(index == 0 ? compare.baseline : compare.variants[index - 1].name);
    row.emplace_back(std::to_string(cost.batch) + (cost.batch_limit == "memory" ? " (memory)" : ""));
    const bool known = cost.fits();
    row.push_back(known ? present::Cell(present::figure_text(metric, cost.figures.at(metric)), cost.figures.at(metric))
                        : present::Cell("-"));
    const bool comparable = known && baseline.fits() && index > 0;
    row.push_back(comparable ? present::Cell(present::signed_percent(study::change_of(metric, cost, baseline)),
                                             study::change_of(metric, cost, baseline))
                             : present::Cell(""));
    row.emplace_back(present::largest_share(cost));
    row.emplace_back(present::percent(study::attention_share(cost), 2), study::attention_share(cost));
    table.rows.push_back(std::move(row));
  }
}

[[nodiscard]] present::Table variants_table(const std::vector<study::ComparedPoint>& points,
                                            const config::Scenario& scenario, const std::string& machine) {
  const std::string metric = study::main_metric(scenario);
  present::Table table;
  table.title = "Predicted on " + machine;
  table.columns = present::axes_columns(points);
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

[[nodiscard]] present::Json point_json(const study::ComparedPoint& compared,
                                       const std::vector<study::ReportedScore>& verdicts,
                                       const config::Compare& compare, const std::string& machine) {
  present::Json json{{"machine", machine},
                     {"choices", present::Json::object()},
                     {"variants", present::Json::array()},
                     {"reported", present::Json::array()}};
  for (const auto& [key, value] : compared.point->choices) json["choices"][key] = value;
  const study::VariantCost& baseline = compared.costs.front();
  for (std::size_t index = 0; index < compared.costs.size(); ++index) {
    present::Json entry{{"variant", index == 0 ? compare.baseline : compare.variants[index - 1].name}};
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

}  // namespace

std::vector<std::string> run_assumptions(const config::Scenario& scenario) {
  if (scenario.workload.kind == config::WorkloadKind::step) return {};
  const RequestWorkload& work = scenario.workload.served;
  if (study::has_pools(scenario)) return present::service_assumptions(scenario);
  return {"assumed: " + std::to_string(work.requests) + " requests of " + present::exact_number(work.prompt.center) +
              " + " + present::exact_number(work.output.center) +
              " tokens unless a row says otherwise, all there from the start and" + " all alike",
          "assumed: prefill steps of whole prompts, then decode steps of a full batch at evenly spread contexts; no " +
              std::string("ramp, no preemption (sim/study/offline_run.hpp)")};
}

void compare_study(const config::Scenario& scenario, const std::vector<std::string>& machines,
                   present::Report& report) {
  const config::Compare& compare = *scenario.compare;
  if (std::ranges::find(compare.reported, "speed_up", &config::ReportedFigure::metric) != compare.reported.end())
    throw InputError(scenario.file, "compare.reported: a speed_up is that of drafts; give engine.speculative_config");
  const std::vector<config::SweepPoint> sweep = config::sweep_points(scenario);
  for (const std::string& assumption : run_assumptions(scenario)) report.heading.push_back(assumption);
  for (const std::string& assumption : compare.assumptions) report.heading.push_back("assumed: " + assumption);
  report.json["comparisons"] = present::Json::array();
  present::Json best = present::Json::array();
  for (const std::string& name : machines) {
    const sim::Machine machine = study::resolve_machine(scenario, name);
    const std::vector<study::ComparedPoint> points = study::compared_points(scenario, sweep, name, machine);
    for (const study::ComparedPoint& point : points)
      for (const study::VariantCost& cost : point.costs)
        present::add_warnings(report, cost.refused);
    const std::vector<study::ReportedScore> verdicts = study::score_reported(points, scenario);
    for (present::Table& table : present::reported_tables(verdicts, points, compare, machine.name))
      report.tables.push_back(std::move(table));
    for (const study::ComparedPoint& point : points)
      if (point.costs.front().service)
        report.tables.push_back(present::pools_table(point.costs, compare, machine.name));
    report.tables.push_back(variants_table(points, scenario, machine.name));
    add_best_variants(study::best_variants(points, scenario, machine), machine.name, report.tables.back(), best);
    report.json["leans_on"][machine.name] = present::add_leanings(machine, recipes_of(points, machine), report);
    for (const study::ComparedPoint& point : points)
      report.json["comparisons"].push_back(point_json(point, verdicts, compare, machine.name));
  }
  if (!best.empty()) report.json["best"] = std::move(best);
}

}  // namespace dculab::cli
