// A scenario's sweep, predicted: every point on every machine, what to choose, and why.
#pragma once

#include <string>

#include "config/scenario_file.hpp"
#include "present/output/report.hpp"
#include "sim/hardware/machine.hpp"
#include "study/scenario/study_points.hpp"

namespace dculab::cli {

// Adds what `scenario` predicts for a machine to the report: tables, recommendation, JSON under "machines"; and, where
// `within` is above 1, which figure of the machine would change the recommendation when it is up to so many times
// smaller or larger.
void predict_study_on(const config::Scenario& scenario, const sim::Machine& machine, double within,
                      present::Report& report);

}  // namespace dculab::cli
