// Which point of a simulated sweep answers its question.
#pragma once

#include <vector>

#include "config/scenario_file.hpp"
#include "present/output/report.hpp"
#include "study/evaluate/simulation.hpp"

namespace dculab::cli {

// Adds the best point by the scenario's objective and, of each machine, which block sizes cannot be told apart; with
// the model's own KV heads where those are swept, which no objective can choose. `asked`: what `all` was simulated for,
// one each.
void add_choice(const std::vector<study::SimulatedPoint>& asked, const std::vector<study::Simulation>& all,
                const config::Scenario& scenario, int threads, present::Report& report);

// Adds the points that no other beats in all of scenario.pareto.
void add_front(const std::vector<study::Simulation>& all, const config::Scenario& scenario, present::Report& report);

}  // namespace dculab::cli
