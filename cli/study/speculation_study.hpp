// A study of drafts: steps that verify them beside plain ones, over batches and drafts; published speed-ups beside the
// closed form and the simulator.
#pragma once

#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "present/output/report.hpp"

namespace dculab::cli {

// On each of the scenario's machines, named as they are resolved.
void study_speculation(const config::Scenario& scenario, const std::vector<std::string>& machines,
                       present::Report& report);

}  // namespace dculab::cli
