// How many KV heads a model should keep on each machine: predicted speed and memory against measured accuracy.
#pragma once

#include <vector>

#include "config/scenario_file.hpp"
#include "present/output/report.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::cli {

// Adds tables and, under "group_size", JSON. Precondition: scenario.accuracy. Throws InputError.
void study_group_size(const config::Scenario& scenario, const std::vector<sim::Machine>& machines,
                      present::Report& report);

}  // namespace dculab::cli
