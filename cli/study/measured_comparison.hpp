// A scenario's variants run on this machine: the predicted speed-up of each beside the measured one.
#pragma once

#include "cli/progress.hpp"
#include "cli/study/measured_study.hpp"
#include "config/scenario_file.hpp"
#include "present/output/report.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::cli {

// Runs baseline and variants at every point of the sweep, fits `host` to the baseline's steps alone, and lets it
// predict the variants, whose steps it has not seen. Weights in a format that a model's folder does not hold are random
// ones of its shape. Adds a table and, under "speed_ups", JSON. Throws InputError when a point cannot be run, or too
// few can be believed.
[[nodiscard]] MeasuredStudy measure_comparison(const config::Scenario& scenario, const sim::Machine& host,
                                               present::Report& report, ProgressBar& bar);

}  // namespace dculab::cli
