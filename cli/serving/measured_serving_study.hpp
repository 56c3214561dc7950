// A scenario's requests served by this machine's engine and simulated, point by point of the sweep, and the two held
// against each other metric by metric.
#pragma once

#include "cli/study/measured_study.hpp"

namespace dculab::cli {

// In each of measure.repeats rounds every point is served twice: with requests of another seed, whose steps calibrate
// the simulator, and with the scenario's own, which are then simulated. Of either, the fastest round counts.
// `host` is this machine before calibration. Throws InputError for what the engine here cannot serve.
[[nodiscard]] MeasuredStudy measure_serving_study(const config::Scenario& scenario, const sim::Machine& host,
                                                  Report& report);

}  // namespace dculab::cli
