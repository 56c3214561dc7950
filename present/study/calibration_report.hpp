// What a calibration fitted, as tables and JSON: parameters and errors of one on traces, intervals of one on points.
#pragma once

#include <string>
#include <vector>

#include "present/output/report.hpp"
#include "present/study/validation_report.hpp"
#include "study/calibrate/catalog.hpp"
#include "study/calibrate/trace_calibration.hpp"

namespace dculab::present {

// A share, or a time with its unit.
[[nodiscard]] std::string parameter_text(const std::string& key, double value);

// What was fitted, and how well.
[[nodiscard]] Table parameter_table(const std::vector<sim::FittedParameter>& parameters);

// On traces: refused steps, parameters, errors and, where steps were held out, what the fit says of them. `machine`:
// the name of the one that it started from.
[[nodiscard]] Report trace_calibration_report(const std::string& machine, const study::BelievedSteps& believed,
                                              const study::TraceCalibration& calibration);

// On points.
struct PointsCalibration {
  const study::Scores& left_out;
  const sim::PointCalibration& learned;
  std::vector<FittedError> errors;  // by kind, and of all
  std::vector<study::LearnedIntervals> intervals;
  std::string folder;
  std::vector<std::string> files;  // below it, that were written
};

// Errors by kind, then all, of the points before and after the fit.
[[nodiscard]] std::vector<FittedError> fitted_errors(const study::ScoreSummary& before,
                                                     const study::ScoreSummary& after);

[[nodiscard]] Report points_calibration_report(const PointsCalibration& calibration);

}  // namespace dculab::present
