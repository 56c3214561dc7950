#include "study/answer/comparison.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::study {
namespace {

// Of all that fits and runs there.
[[nodiscard]] std::vector<const sim::MeasuredRun*> runs_of(const std::vector<ComparedPoint>& points,
                                                           const sim::Machine& machine) {
  std::vector<const sim::MeasuredRun*> measured_runs;
  for (const ComparedPoint& point : points)
    for (const VariantCost& cost : point.costs)
      if (cost.fits() && is_run_by(cost, machine)) measured_runs.push_back(&cost.measured_run);
  return measured_runs;
}

}  // namespace

ComparisonStudy compare_variants(const config::Scenario& scenario, const std::vector<std::string>& machines) {
  const std::vector<config::ReportedFigure>& reported = scenario.compare->reported;
  if (std::ranges::find(reported, "speed_up", &config::ReportedFigure::metric) != reported.end())
    throw InputError(scenario.file, "compare.reported: a speed_up is that of drafts; give engine.speculative_config");
  ComparisonStudy study{.sweep = config::sweep_points(scenario)};
  for (const std::string& name : machines) {
    Comparison& found = study.machines.emplace_back(Comparison{.machine = resolve_machine(scenario, name)});
    found.points = compared_points(scenario, study.sweep, name, found.machine);
    found.scores = score_reported(found.points, scenario);
    found.best = best_variants(found.points, scenario, found.machine);
    found.input_sensitivities = sim::input_sensitivities(found.machine, runs_of(found.points, found.machine));
  }
  return study;
}

}  // namespace dculab::study
