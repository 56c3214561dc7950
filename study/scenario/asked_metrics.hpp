// The metrics that a scenario asks about, and whether its machine has what they follow from.
#pragma once

#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::study {

// What the scenario's question names: its objective, front and constraints. Names of keys among them.
[[nodiscard]] std::vector<std::string> asked_metrics(const config::Scenario& scenario);

// Throws InputError where the scenario asks for energy or money and the machine's file does not state the figures.
void refuse_unstated_costs(const config::Scenario& scenario, const sim::Machine& machine);

}  // namespace dculab::study
