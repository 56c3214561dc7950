// A scenario's sweep, measured on this machine: calibrate on one part, predict the rest, compare.
#pragma once

#include <string>
#include <vector>

#include "cli/progress.hpp"
#include "config/scenario_file.hpp"
#include "model/trace.hpp"
#include "present/output/report.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::cli {

struct MeasuredStudy {
  Trace trace;
  sim::Machine machine;  // calibrated
};

// Runs every point of the sweep on the engine and adds predicted | measured | ratio | bound of the held-out points,
// the error beside the measurement's own spread, and the regret of the predicted choice. `host` is this machine
// before calibration. Throws InputError when the points cannot be run or split.
[[nodiscard]] MeasuredStudy measure_study(const config::Scenario& scenario, const sim::Machine& host,
                                          present::Report& report, ProgressBar& bar);

}  // namespace dculab::cli
