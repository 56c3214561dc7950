// How `bench --workload SCENARIO` shows the requests that were served.
#pragma once

#include "present/output/report.hpp"
#include "study/measure/served_scenario.hpp"

namespace dculab::present {

[[nodiscard]] Report served_scenario_report(const std::string& question, const study::ServedScenario& answer);

}  // namespace dculab::present
