// What `dculab simulate` found, in a sentence or two.
#pragma once

#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "study/answer/simulated_scenario.hpp"

namespace dculab::present {

// Of one simulation what its requests see, whether they are within the SLO, and what bounds the steps; of several which
// one the objective prefers, or else serves the most, and how many meet the SLO.
[[nodiscard]] std::vector<std::string> conclusion_of(const config::Scenario& scenario,
                                                     const study::SimulationAnswer& answer);

}  // namespace dculab::present
