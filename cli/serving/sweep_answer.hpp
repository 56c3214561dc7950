// Which point of a simulated sweep answers its question.
#pragma once

#include <vector>

#include "cli/output/output.hpp"
#include "cli/serving/simulation.hpp"
#include "config/scenario_file.hpp"

namespace dculab::cli {

// Adds the best point by the objective, and which block sizes cannot be told apart from its. `asked`: what `all` was
// simulated for, one each.
void add_choice(const std::vector<SimulatedPoint>& asked, const std::vector<Simulation>& all,
                const config::Objective& objective, int threads, Report& report);

// Adds the points that no other beats in all of scenario.pareto.
void add_front(const std::vector<Simulation>& all, const config::Scenario& scenario, Report& report);

}  // namespace dculab::cli
