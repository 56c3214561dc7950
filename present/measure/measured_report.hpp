// What was run on this machine beside what was predicted of it: steps, variants, drafts or served requests.
#pragma once

#include "config/scenario_file.hpp"
#include "present/output/report.hpp"
#include "study/measure/measured_study.hpp"

namespace dculab::present {

// Of a sweep: predicted | measured | ratio | bound of the held-out points, the error beside the measurement's own
// spread, and the regret of the predicted choice. Of variants their speed-ups, of drafts what they are worth, each
// predicted and measured. Of served requests: served_study.hpp.
void add_measured_study(const config::Scenario& scenario, const study::MeasuredStudy& study, Report& report);

}  // namespace dculab::present
