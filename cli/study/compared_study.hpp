// A scenario's variants against its baseline, predicted, beside what was published about them.
#pragma once

#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "present/output/report.hpp"

namespace dculab::cli {

// Adds tables and, under "comparisons", JSON; `machines`: their names or files. A variant, or a point of the sweep,
// runs the stack that it says, on the machine that it says. Precondition: scenario.compare. Throws InputError.
void compare_study(const config::Scenario& scenario, const std::vector<std::string>& machines, present::Report& report);

// What the closed form of a run of requests takes for granted, in words.
[[nodiscard]] std::vector<std::string> run_assumptions(const config::Scenario& scenario);

}  // namespace dculab::cli
