#include "cli/study/measured_comparison.hpp"

#include <cmath>

#include "config/unit_text.hpp"
#include "present/values/machine_figures.hpp"
#include "study/measure/measured_comparison.hpp"
#include "study/scenario/axis_title.hpp"

namespace dculab::cli {
namespace {

void add_speed_ups(const std::vector<study::MeasuredSpeedUp>& speed_ups, const std::vector<config::SweepPoint>& points,
                   const config::Compare& compare, present::Report& report) {
  present::Table table;
  table.title =
      "Speed-up over " + compare.baseline + ": predicted by a fit to " + compare.baseline + " alone, measured";
  for (const auto& [key, value] : points.front().choices) table.columns.push_back(study::axis_title(key));
  for (const char* column : {"variant", "measured step", "predicted", "measured", "in single rounds", "points apart"})
    table.columns.emplace_back(column);
  report.json["speed_ups"] = present::Json::array();
  for (const study::MeasuredSpeedUp& each : speed_ups) {
    const std::string& name = compare.variants[each.variant].name;
    std::vector<present::Cell> row;
    for (const auto& [key, value] : points[each.point].choices) row.emplace_back(value);
    row.emplace_back(name);
    row.emplace_back(config::short_text(each.step), each.step.value());
    row.emplace_back(present::number(each.predicted) + "x", each.predicted);
    row.emplace_back(present::number(each.measured) + "x", each.measured);
    row.emplace_back(present::number(each.lowest) + " to " + present::number(each.highest) + "x");
    row.emplace_back(present::number(100 * std::abs(each.predicted - each.measured), 2),
                     100 * (each.predicted - each.measured));
    table.rows.push_back(std::move(row));
    report.json["speed_ups"].push_back({{"variant", name},
                                        {"choices", present::choices_json(points[each.point].choices)},
                                        {"measured_seconds", each.step.value()},
                                        {"predicted_speed_up", each.predicted},
                                        {"measured_speed_up", each.measured},
                                        {"measured_speed_up_range", {each.lowest, each.highest}}});
  }
  report.tables.push_back(std::move(table));
}

}  // namespace

MeasuredStudy measure_comparison(const config::Scenario& scenario, const sim::Machine& host, present::Report& report,
                                 ProgressBar& bar) {
  const std::vector<config::SweepPoint> sweep = config::sweep_points(scenario);
  study::MeasuredComparison found = study::measure_comparison(
      scenario, sweep, host, [&bar](const std::string& label, double share) { bar.update(label, share); });
  bar.clear();
  report.heading.push_back(host.description);
  add_speed_ups(found.speed_ups, sweep, *scenario.compare, report);
  report.json["machine_facts"][found.machine.name] = present::machine_facts(found.machine);
  return {std::move(found.trace), std::move(found.machine)};
}

}  // namespace dculab::cli
