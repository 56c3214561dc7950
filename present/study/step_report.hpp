// A scenario's sweep of steps, predicted: every point on a machine, what to choose, and why.
#pragma once

#include <vector>

#include "present/output/report.hpp"
#include "study/decide/step_study.hpp"

namespace dculab::present {

// Tables of each machine and JSON under "machines". Where KV heads were weighed without figures of their accuracy, also
// what is known of that elsewhere.
void add_step_studies(const std::vector<study::StepStudy>& machines, Report& report);

}  // namespace dculab::present
