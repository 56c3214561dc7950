#include "study/decide/objective.hpp"

#include <algorithm>
#include <cmath>

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

double cost(config::Goal goal, double figure) { return goal == config::Goal::minimize ? figure : -figure; }

std::vector<double> costs(const std::vector<config::Aim>& aims, const FigureOf& figure_of) {
  std::vector<double> all;
  for (const config::Aim& aim : aims) all.push_back(cost(aim.goal, figure_of(aim.metric)));
  if (std::ranges::any_of(all, [](double each) { return std::isnan(each); })) all.clear();
  return all;
}

}  // namespace dculab::study
