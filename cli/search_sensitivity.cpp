#include "cli/search_sensitivity.hpp"

#include <vector>

#include "cli/predicted_study.hpp"
#include "cli/sensitivity_report.hpp"
#include "core/error.hpp"
#include "sim/cost/step_price.hpp"

namespace dculab::cli {
namespace {

struct Contender {
  StepPoint step;
  std::string label;
  bool moves = true;  // its machine is the one whose figures change
};

[[nodiscard]] bool is_same(const StepPoint& a, const StepPoint& b) {
  const auto& left = a.scenario.machine_figures;
  const auto& right = b.scenario.machine_figures;
  return a.scenario.machines == b.scenario.machines &&
         std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const config::Node& x, const config::Node& y) { return x.key == y.key && x.text == y.text; });
}

[[nodiscard]] std::vector<Contender> contenders_of(const SweepSpace& space, const SearchSummary& summary) {
  PointPricer pricer(space);
  const StepPoint best = pricer.step(summary.best().front().number);
  std::vector<Contender> contenders;
  for (const std::uint64_t number : summary.contenders()) try {
      Contender contender{pricer.step(number), "", true};
      contender.moves = is_same(contender.step, best);
      for (const auto& [key, value] : space.choices(number))
        contender.label += (contender.label.empty() ? "" : ", ") + axis_title(key) + " " + value;
      contenders.push_back(std::move(contender));
    } catch (const InputError&) {
      // There can be no such step, on no machine of this kind.
    }
  return contenders;
}

}  // namespace

void report_sensitivity(const SweepSpace& space, const SearchSummary& summary, double within, Report& report) {
  const config::Scenario& scenario = space.scenario();
  const std::vector<Contender> contenders = contenders_of(space, summary);
  const std::size_t metric = metric_index(scenario.objective.metric);
  const double sign = scenario.objective.goal == config::Goal::minimize ? 1 : -1;
  sim::StepPrice price;
  const sim::Question question = [&](const sim::Machine& machine) {
    sim::Answer answer{"nothing meets the constraints", 0};
    for (const Contender& each : contenders) {
      const sim::Machine& its = each.moves ? machine : each.step.machine;
      sim::price_step(its, each.step.plan, price);
      const StepFigures figures = step_figures(each.step, its, price.seconds);
      if (!meets_constraints(scenario, each.step, figures)) continue;
      if (answer.figure == 0 || sign * figures[metric] < sign * answer.figure) answer = {each.label, figures[metric]};
    }
    return answer;
  };
  PointPricer pricer(space);
  const sim::Machine machine = pricer.step(summary.best().front().number).machine;
  report.json["sensitivity"] = add_sensitivity(machine, question, within, scenario.objective.metric, report);
  if (contenders.size() < space.size())
    report.tables.back().notes.push_back("among " + std::to_string(contenders.size()) + " of " +
                                         std::to_string(space.size()) +
                                         " points: the best ones, and the best with each value");
}

}  // namespace dculab::cli
