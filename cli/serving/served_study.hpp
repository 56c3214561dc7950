// A scenario's requests served by this machine's engine and simulated, point by point of the sweep, and the two held
// against each other metric by metric.
#pragma once

#include "cli/study/measured_study.hpp"

namespace dculab::cli {

// Adds what study::measure_served_study finds to the report.
[[nodiscard]] MeasuredStudy measure_serving_study(const config::Scenario& scenario, const sim::Machine& host,
                                                  present::Report& report);

}  // namespace dculab::cli
