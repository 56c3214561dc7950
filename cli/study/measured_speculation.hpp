// A study of drafts, measured here: calibrate on steps without drafts, predict what drafts are worth, compare.
#pragma once

#include "cli/study/measured_study.hpp"

namespace dculab::cli {

// Decodes each point of the sweep with and without drafts, with weights of both models' shapes, and adds predicted |
// measured | ratio. How many drafts are accepted is what synthetic_acceptance_rates say. `host` is this machine before
// calibration. Throws InputError when the points cannot be run.
[[nodiscard]] MeasuredStudy measure_speculation(const config::Scenario& scenario, const sim::Machine& host,
                                                present::Report& report, ProgressBar& bar);

}  // namespace dculab::cli
