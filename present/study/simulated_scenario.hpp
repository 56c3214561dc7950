// The tables and the JSON of `dculab simulate`.
#pragma once

#include "present/output/report.hpp"
#include "study/answer/simulated_scenario.hpp"

namespace dculab::present {

// Adds a scenario to the report, whose JSON has those before under "simulations": of one point its latencies, of
// several a row each.
void add_simulated_scenario(const study::SimulationQuestion& question, const study::SimulationAnswer& answer,
                            Report& report);

}  // namespace dculab::present
