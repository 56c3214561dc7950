// A scenario's sweep as designs: for each of them which KV heads and block size to choose, and how fast that is.
#pragma once

#include "config/scenario_file.hpp"
#include "present/output/report.hpp"

namespace dculab::cli {

// The axes that the scenario's `choose` names are decided at every point of the others, on each of its machines. Adds a
// table for each machine, and JSON under "designs". Precondition: not refused.
void study_designs(const config::Scenario& scenario, present::Report& report);

}  // namespace dculab::cli
