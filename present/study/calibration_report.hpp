// What a calibration fitted, as tables and JSON: parameters and errors of one on traces, intervals of one on points.
#pragma once

#include <vector>

#include "present/output/report.hpp"
#include "study/calibrate/catalog.hpp"
#include "study/calibrate/trace_calibration.hpp"

namespace dculab::present {

// On traces: refused steps, parameters, errors and, where steps were held out, what the fit says of them.
void add_calibration(const study::BelievedSteps& believed, const study::TraceCalibration& calibration, Report& report);

// On points: a row for each machine and stack.
void add_learned_intervals(const std::vector<study::LearnedIntervals>& learned, Report& report);

}  // namespace dculab::present
