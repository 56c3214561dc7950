#include "cli/study/compared_study.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "cli/output/leaning_report.hpp"
#include "cli/study/best_variants.hpp"
#include "cli/study/reported_table.hpp"
#include "cli/study/service_tables.hpp"
#include "cli/study/variant_cost.hpp"
#include "core/error.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/stacks.hpp"

namespace dculab::cli {
namespace {

// One of the machines of the scenario that is studied, and its name or file there.
struct Listed {
  const config::Scenario& scenario;
  const std::string& name;
  sim::Machine machine = study::resolve_machine(scenario, name);
};

// The machine that a variant or a point of the sweep is priced on, with its own figures and stack.
[[nodiscard]] sim::Machine machine_of(const config::Scenario& scenario, const Listed& listed) {
  if (!study::has_pools(scenario)) study::require_one_device(scenario, "a study with compare");
  const bool is_listed = scenario.machines == listed.scenario.machines;
  if (is_listed && study::same_machine_figures(scenario, listed.scenario)) return listed.machine;
  return study::resolve_machine(scenario, is_listed ? listed.name : scenario.machines.front());
}

[[nodiscard]] ComparedPoint cost_point(const config::SweepPoint& point, const config::Compare& compare,
                                       const Listed& listed) {
  ComparedPoint compared{&point, {cost_of(point.scenario, machine_of(point.scenario, listed))}};
  for (const config::Variant& variant : compare.variants) {
    const config::Scenario changed = config::with_changes(point.scenario, variant);
    compared.costs.push_back(cost_of(changed, machine_of(changed, listed)));
  }
  return compared;
}

// Of all that fits and runs there.
[[nodiscard]] std::vector<const sim::Recipe*> recipes_of(const std::vector<ComparedPoint>& points,
                                                         const sim::Machine& machine) {
  std::vector<const sim::Recipe*> recipes;
  for (const ComparedPoint& point : points)
    for (const VariantCost& cost : point.costs)
      if (cost.fits() && is_run_by(cost, machine)) recipes.push_back(&cost.recipe);
  return recipes;
}

void add_variant_rows(Table& table, const ComparedPoint& compared, const config::Compare& compare,
                      const std::string& metric) {
  const VariantCost& baseline = compared.costs.front();
  for (std::size_t index = 0; index < compared.costs.size(); ++index) {
    const VariantCost& cost = compared.costs[index];
    std::vector<Cell> row = axes_cells(*compared.point);
    row.emplace_back(index == 0 ? compare.baseline : compare.variants[index - 1].name);
    row.emplace_back(std::to_string(cost.batch) + (cost.batch_limit == "memory" ? " (memory)" : ""));
    const bool known = cost.fits();
    row.push_back(known ? Cell(figure_text(metric, cost.figures.at(metric)), cost.figures.at(metric)) : Cell("-"));
    const bool comparable = known && baseline.fits() && index > 0;
    row.push_back(comparable
                      ? Cell(signed_percent(change_of(metric, cost, baseline)), change_of(metric, cost, baseline))
                      : Cell(""));
    row.emplace_back(largest_share(cost));
    row.emplace_back(percent(attention_share(cost), 2), attention_share(cost));
    table.rows.push_back(std::move(row));
  }
}

[[nodiscard]] Table variants_table(const std::vector<ComparedPoint>& points, const config::Scenario& scenario,
                                   const std::string& machine) {
  const std::string metric = main_metric(scenario);
  Table table;
  table.title = "Predicted on " + machine;
  table.columns = axes_columns(points);
  for (const char* column : {"variant", "batch", "", "change", "most of the time", "attention"})
    table.columns.emplace_back(column);
  table.columns[table.columns.size() - 4] = metric == "step_time" ? "step" : "output";
  for (const ComparedPoint& point : points) add_variant_rows(table, point, *scenario.compare, metric);
  const std::vector<config::Variant>& variants = scenario.compare->variants;
  for (std::size_t index = 0; index < variants.size(); ++index) {
    if (!variants[index].note.empty()) table.notes.push_back(variants[index].name + ": " + variants[index].note);
    const sim::Machine& runs = points.front().costs[index + 1].machine;
    if (!is_run_by(points.front().costs.front(), runs))
      table.notes.push_back(variants[index].name + ": on " + runs.name + ", " + study::whose_kernels(runs));
  }
  return table;
}

[[nodiscard]] Json point_json(const ComparedPoint& compared, const std::vector<Verdict>& verdicts,
                              const config::Compare& compare, const std::string& machine) {
  Json json{
      {"machine", machine}, {"choices", Json::object()}, {"variants", Json::array()}, {"reported", Json::array()}};
  for (const auto& [key, value] : compared.point->choices) json["choices"][key] = value;
  const VariantCost& baseline = compared.costs.front();
  for (std::size_t index = 0; index < compared.costs.size(); ++index) {
    Json entry{{"variant", index == 0 ? compare.baseline : compare.variants[index - 1].name}};
    entry.update(to_json(compared.costs[index]));
    if (index > 0 && baseline.fits() && compared.costs[index].fits())
      for (const auto& [metric, value] : baseline.figures)
        entry["change"][metric] = change_of(metric, compared.costs[index], baseline);
    json["variants"].push_back(std::move(entry));
  }
  for (const Verdict& verdict : verdicts)
    if (verdict.point == &compared) json["reported"].push_back(verdict_json(verdict));
  return json;
}

}  // namespace

std::vector<std::string> run_assumptions(const config::Scenario& scenario) {
  if (scenario.workload.kind == config::WorkloadKind::step) return {};
  const RequestWorkload& work = scenario.workload.served;
  if (study::has_pools(scenario)) return service_assumptions(scenario);
  return {"assumed: " + std::to_string(work.requests) + " requests of " + exact_number(work.prompt.center) + " + " +
              exact_number(work.output.center) + " tokens unless a row says otherwise, all there from the start and" +
              " all alike",
          "assumed: prefill steps of whole prompts, then decode steps of a full batch at evenly spread contexts; no " +
              std::string("ramp, no preemption (sim/study/offline_run.hpp)")};
}

void compare_study(const config::Scenario& scenario, const std::vector<std::string>& machines, Report& report) {
  const config::Compare& compare = *scenario.compare;
  if (std::ranges::find(compare.reported, "speed_up", &config::ReportedFigure::metric) != compare.reported.end())
    throw InputError(scenario.file, "compare.reported: a speed_up is that of drafts; give engine.speculative_config");
  const std::vector<config::SweepPoint> sweep = config::sweep_points(scenario);
  for (const std::string& assumption : run_assumptions(scenario)) report.heading.push_back(assumption);
  for (const std::string& assumption : compare.assumptions) report.heading.push_back("assumed: " + assumption);
  report.json["comparisons"] = Json::array();
  Json best = Json::array();
  for (const std::string& name : machines) {
    const Listed listed{scenario, name};
    const sim::Machine& machine = listed.machine;
    std::vector<ComparedPoint> points;
    for (const config::SweepPoint& point : sweep) points.push_back(cost_point(point, compare, listed));
    const std::vector<Verdict> verdicts = judge(points, scenario);
    for (Table& table : reported_tables(verdicts, points, compare, machine.name))
      report.tables.push_back(std::move(table));
    for (const ComparedPoint& point : points)
      if (point.costs.front().service) report.tables.push_back(pools_table(point.costs, compare, machine.name));
    report.tables.push_back(variants_table(points, scenario, machine.name));
    add_best_variants(points, scenario, machine, report.tables.back(), best);
    report.json["leans_on"][machine.name] = add_leanings(machine, recipes_of(points, machine), report);
    for (const ComparedPoint& point : points)
      report.json["comparisons"].push_back(point_json(point, verdicts, compare, machine.name));
  }
  if (!best.empty()) report.json["best"] = std::move(best);
}

}  // namespace dculab::cli
