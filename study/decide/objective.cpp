#include "study/decide/objective.hpp"

#include <algorithm>
#include <cmath>

#include "study/decide/preference.hpp"

namespace dculab::study {

bool is_admissible(const config::Objective& objective, const FigureOf& figure_of) {
  return std::ranges::all_of(objective.subject_to, [&figure_of](const config::Constraint& constraint) {
    const double figure = figure_of(constraint.metric);
    return constraint.comparison == config::Comparison::at_most ? figure <= constraint.value
                                                                : figure >= constraint.value;
  });
}

double merit(const config::Objective& objective, const FigureOf& figure_of) {
  const double figure = figure_of(objective.metric);
  if (!is_admissible(objective, figure_of) || !(figure > 0)) return 0;
  return objective.goal == config::Goal::maximize ? figure : 1 / figure;
}

std::optional<std::size_t> best_point(const config::Objective& objective, std::size_t count,
                                      const std::function<FigureOf(std::size_t)>& figures_of) {
  std::vector<Evaluated> evaluated;
  std::optional<std::size_t> zero;  // a figure of 0 has no ratio: the worst of what is to be large, or the best
  for (std::size_t point = 0; point < count; ++point) {
    const FigureOf figure_of = figures_of(point);
    evaluated.push_back({.value = {}, .figure = merit(objective, figure_of)});
    if (!zero && figure_of(objective.metric) == 0 && is_admissible(objective, figure_of)) zero = point;
  }
  if (zero && objective.goal == config::Goal::minimize) return zero;
  const std::optional<Verdict> verdict = decide(evaluated, {.resolution = 0});
  return verdict ? verdict->best : zero;
}

double cost(config::Goal goal, double figure) { return goal == config::Goal::minimize ? figure : -figure; }

std::vector<double> costs(const std::vector<config::Aim>& aims, const FigureOf& figure_of) {
  std::vector<double> all;
  for (const config::Aim& aim : aims) all.push_back(cost(aim.goal, figure_of(aim.metric)));
  if (std::ranges::any_of(all, [](double each) { return std::isnan(each); })) all.clear();
  return all;
}

}  // namespace dculab::study
