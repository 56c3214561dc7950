// How many KV heads a model should keep on each machine: predicted speed and memory against measured accuracy.
#pragma once

#include "config/scenario_file.hpp"
#include "present/output/report.hpp"
#include "study/decide/group_choice.hpp"

namespace dculab::present {

// A table of all machines, then one of each, and JSON (comparison_fields.hpp). Precondition: scenario.accuracy.
void add_groups(const config::Scenario& scenario, const study::GroupStudy& study, Report& report);

}  // namespace dculab::present
