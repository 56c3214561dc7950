// How `validate` shows rows, what is left out and why, and the errors over all rows and by group.
#pragma once

#include <string>
#include <vector>

#include "present/output/report.hpp"
#include "study/validate/leave_one_out.hpp"
#include "study/validate/validation.hpp"

namespace dculab::present {

inline constexpr const char* kValidateSchema = "dculab/validate/1";

// Lines of the heading: what is not scored, with its reasons.
void add_left_out_lines(const study::Scores& scores, Report& report);

// A line of the heading: on how many points was calibrated.
void add_learned_line(const sim::PointCalibration& calibration, Report& report);

// What a calibration learned, rows and their errors, and to which assumed figures predictions are sensitive, machine by
// machine. `worst`: rows that the table shows, the worst first; 0 = all, in the file's order. JSON and CSV have all.
[[nodiscard]] Report validation_report(const study::Validation& validation, int worst);

// Each of a group predicted from all others.
struct LeftOutGroup {
  std::string by;  // one of study::left_out_groups()
  std::vector<study::LeftOutPoint> points;
  std::vector<study::SourceEffect> effects;  // of sources, where there are any
};

// `--leave-one-out`: left out x kind with rows, errors, coverage and the naive roofline's errors. `left_out_rows`:
// those that are in no table.
[[nodiscard]] Report left_out_report(const study::Scores& left_out_rows, std::vector<LeftOutGroup> groups);

// Errors of points as the files that were calibrated have the machines, and as they were fitted.
struct FittedError {
  std::string kind;  // "all": of all
  study::Score before, after;
};
void add_fitted_errors(const std::vector<FittedError>& errors, Report& report);

}  // namespace dculab::present
