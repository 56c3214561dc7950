// Which points a scenario's objective admits, and which of them it prefers: of a search and of `simulate` alike.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/scenario_file.hpp"

namespace dculab::study {

// What a point has of a metric; NaN: nothing, and no constraint on it holds.
using FigureOf = std::function<double(const std::string& metric)>;

// Whether a point meets objective.subject_to.
[[nodiscard]] bool is_admissible(const config::Objective& objective, const FigureOf& figure_of);

// The objective's metric of a point as a figure of which more is better; 0 where the point does not meet
// objective.subject_to or lacks it.
[[nodiscard]] double merit(const config::Objective& objective, const FigureOf& figure_of);

// The best of `count` points, by the rule of preference.hpp; of equals the first. Nothing where none meets
// objective.subject_to and has the objective's metric.
[[nodiscard]] std::optional<std::size_t> best_point(const config::Objective& objective, std::size_t count,
                                                    const std::function<FigureOf(std::size_t point)>& figures_of);

// A figure as a cost: less is better, whatever the goal.
[[nodiscard]] double cost(config::Goal goal, double figure);

// What a Pareto front weighs; empty where the point does not have all of it.
[[nodiscard]] std::vector<double> costs(const std::vector<config::Aim>& aims, const FigureOf& figure_of);

}  // namespace dculab::study
