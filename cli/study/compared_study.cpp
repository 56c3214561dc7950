#include "cli/study/compared_study.hpp"

#include <cmath>
#include <optional>
#include <vector>

#include "cli/output/axis_title.hpp"
#include "cli/output/leaning_report.hpp"
#include "cli/study/variant_cost.hpp"
#include "core/error.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/stacks.hpp"

namespace dculab::cli {
namespace {

// One point of the sweep on one machine: what each variant costs, the baseline first.
struct ComparedPoint {
  const config::SweepPoint* point = nullptr;
  std::vector<VariantCost> costs;  // [1 + variants]
};

[[nodiscard]] double change_of(const std::string& metric, const VariantCost& variant, const VariantCost& baseline) {
  return variant.figures.at(metric) / baseline.figures.at(metric) - 1;
}

[[nodiscard]] std::string signed_points(double share) {
  return (share < 0 ? "−" : "+") + number(std::abs(100 * share), 3);
}

// One of the machines of the scenario that is studied, and its name or file there.
struct Listed {
  const config::Scenario& scenario;
  const std::string& name;
  sim::Machine machine = study::resolve_machine(scenario, name);
};

// The machine that a variant or a point of the sweep is priced on, with its own figures and stack.
[[nodiscard]] sim::Machine machine_of(const config::Scenario& scenario, const Listed& listed) {
  study::require_one_device(scenario, "a study with compare");
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

[[nodiscard]] bool is_run_by(const VariantCost& cost, const sim::Machine& machine) {
  return cost.machine.name == machine.name && cost.machine.stack.name == machine.stack.name;
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

// The cells of the axes; empty ones below the first row of a point.
[[nodiscard]] std::vector<Cell> axes_cells(const config::SweepPoint& point) {
  std::vector<Cell> row;
  for (const auto& [key, value] : point.choices) row.emplace_back(value);
  return row;
}

[[nodiscard]] std::vector<std::string> axes_columns(const std::vector<ComparedPoint>& points) {
  std::vector<std::string> columns;
  for (const auto& [key, value] : points.front().point->choices) columns.push_back(axis_title(key));
  return columns;
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

// One published figure beside the prediction for the same point.
struct Verdict {
  const ComparedPoint* point = nullptr;
  const config::ReportedFigure* figure = nullptr;
  const VariantCost* variant = nullptr;
  double predicted = 0;  // change
  FigureInterval of_baseline{};
  std::optional<FigureInterval> of_change{};

  [[nodiscard]] const VariantCost& baseline() const { return point->costs.front(); }
};

[[nodiscard]] std::vector<Verdict> judge(const std::vector<ComparedPoint>& points, const config::Scenario& scenario) {
  std::vector<Verdict> verdicts;
  const config::Compare& compare = *scenario.compare;
  for (const config::ReportedFigure& figure : compare.reported)
    for (const ComparedPoint& point : points) {
      if (!config::is_at(figure, point.point->scenario)) continue;
      for (std::size_t index = 0; index < compare.variants.size(); ++index) {
        const VariantCost& cost = point.costs[index + 1];
        if (compare.variants[index].name != figure.variant || !cost.fits() || !point.costs.front().fits()) continue;
        if (!cost.figures.contains(figure.metric))
          throw InputError(scenario.file, "compare.reported: this workload has no " + figure.metric);
        const VariantCost& baseline = point.costs.front();
        verdicts.push_back({&point, &figure, &cost, change_of(figure.metric, cost, baseline),
                            interval_of(baseline, figure.metric), interval_of_change(baseline, cost, figure.metric)});
      }
    }
  return verdicts;
}

// "52.3 s → 57.4 s", where the publication has them.
[[nodiscard]] std::string reported_text(const config::ReportedFigure& figure) {
  const std::string change = signed_percent(figure.change);
  if (!figure.baseline || !figure.value) return change;
  return figure_text(figure.metric, *figure.baseline) + " → " + figure_text(figure.metric, *figure.value) + ", " +
         change;
}

[[nodiscard]] std::string predicted_text(const Verdict& verdict) {
  const std::string& metric = verdict.figure->metric;
  const std::string change = signed_percent(verdict.predicted);
  if (!verdict.figure->baseline) return change;
  return figure_text(metric, verdict.baseline().figures.at(metric)) + " → " +
         figure_text(metric, verdict.variant->figures.at(metric)) + ", " + change;
}

// "20.1 s .. 43.2 s; −5.1 % .. −1.2 %", of the baseline and of the change.
[[nodiscard]] std::string interval_text(const Verdict& verdict) {
  const std::string& metric = verdict.figure->metric;
  const auto text = [](const std::string& low, const std::string& high) { return low + " .. " + high; };
  std::string of_change;
  if (const auto& change = verdict.of_change)
    of_change = text(signed_percent(change->low), signed_percent(change->high));
  if (!verdict.figure->baseline) return of_change;
  return text(figure_text(metric, verdict.of_baseline.low), figure_text(metric, verdict.of_baseline.high)) +
         (of_change.empty() ? "" : "; ") + of_change;
}

[[nodiscard]] Table reported_table(const std::vector<Verdict>& verdicts, const std::vector<ComparedPoint>& points,
                                   const config::Compare& compare, const std::string& machine) {
  Table table;
  table.title = "Predicted on " + machine + " beside reported: change against " + compare.baseline;
  table.columns = axes_columns(points);
  for (const char* column :
       {"variant", "metric", "predicted", "90 % interval", "reported", "points apart", "bound of "})
    table.columns.emplace_back(column);
  table.columns.back() += compare.baseline;
  for (const Verdict& verdict : verdicts) {
    std::vector<Cell> row = axes_cells(*verdict.point->point);
    row.emplace_back(verdict.figure->variant);
    row.emplace_back(verdict.figure->metric);
    row.emplace_back(predicted_text(verdict), verdict.predicted);
    row.emplace_back(interval_text(verdict));
    row.emplace_back(reported_text(*verdict.figure), verdict.figure->change);
    const double apart = verdict.predicted - verdict.figure->change;
    row.emplace_back(signed_points(apart), 100 * apart);
    row.emplace_back(largest_share(verdict.baseline()) + "; attention " +
                     percent(attention_share(verdict.baseline()), 2));
    table.rows.push_back(std::move(row));
  }
  table.notes.push_back("reported: " + compare.source);
  return table;
}

[[nodiscard]] Json verdict_json(const Verdict& verdict) {
  const config::ReportedFigure& figure = *verdict.figure;
  Json json{{"variant", figure.variant},
            {"metric", figure.metric},
            {"predicted_change", verdict.predicted},
            {"reported_change", figure.change},
            {"difference", verdict.predicted - figure.change},
            {"bound", largest_share(verdict.baseline())}};
  json["baseline_interval"] = {verdict.of_baseline.low, verdict.of_baseline.high};
  if (verdict.of_change) json["change_interval"] = {verdict.of_change->low, verdict.of_change->high};
  if (figure.baseline) json["reported_baseline"] = *figure.baseline;
  if (figure.value) json["reported_value"] = *figure.value;
  return json;
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
  return {"assumed: " + std::to_string(work.requests) + " requests of " + exact_number(work.prompt.center) + " + " +
              exact_number(work.output.center) + " tokens unless a row says otherwise, all there from the start and" +
              " all alike",
          "assumed: prefill steps of whole prompts, then decode steps of a full batch at evenly spread contexts; no " +
              std::string("ramp, no preemption (sim/study/offline_run.hpp)")};
}

void compare_study(const config::Scenario& scenario, const std::vector<std::string>& machines, Report& report) {
  const config::Compare& compare = *scenario.compare;
  const std::vector<config::SweepPoint> sweep = config::sweep_points(scenario);
  for (const std::string& assumption : run_assumptions(scenario)) report.heading.push_back(assumption);
  for (const std::string& assumption : compare.assumptions) report.heading.push_back("assumed: " + assumption);
  report.json["comparisons"] = Json::array();
  for (const std::string& name : machines) {
    const Listed listed{scenario, name};
    const sim::Machine& machine = listed.machine;
    std::vector<ComparedPoint> points;
    for (const config::SweepPoint& point : sweep) points.push_back(cost_point(point, compare, listed));
    const std::vector<Verdict> verdicts = judge(points, scenario);
    if (!verdicts.empty()) report.tables.push_back(reported_table(verdicts, points, compare, machine.name));
    report.tables.push_back(variants_table(points, scenario, machine.name));
    report.json["leans_on"][machine.name] = add_leanings(machine, recipes_of(points, machine), report);
    for (const ComparedPoint& point : points)
      report.json["comparisons"].push_back(point_json(point, verdicts, compare, machine.name));
  }
}

}  // namespace dculab::cli
