// A scenario's requests served by this machine's engine and simulated, point by point of the sweep, and the two held
// against each other metric by metric.
#pragma once

#include "config/scenario_file.hpp"
#include "present/output/report.hpp"
#include "study/measure/served_study.hpp"

namespace dculab::present {

// Tables; the fields of JSON are measured_serving_fields.hpp. `first`: a point of the sweep, which names its axes;
// `rounds`: measure.repeats.
void add_served_study(const study::ServedStudy& found, const config::SweepPoint& first, int rounds, Report& report);

}  // namespace dculab::present
