// How `validate` shows rows, what is left out and why, and the errors over all rows and by group.
#pragma once

#include <string>
#include <vector>

#include "present/output/show.hpp"
#include "study/validate/leave_one_out.hpp"
#include "study/validate/validation.hpp"

namespace dculab::present {

// What is not scored, with its reasons: lines of the heading, and `refused` and `not_priced` of the JSON.
void add_left_out_rows(const study::Scores& scores, Report& report);

// What a calibration learned, those rows, all others and their errors, and which assumed figures the predictions lean
// on, machine by machine. `worst`: the table shows only so many rows, the worst first; 0 = all, in the file's order.
// JSON and CSV have all.
void add_validation(const study::Validation& validation, int worst, Format format, Report& report);

// `--leave-one-out`: left out x kind with rows, errors, coverage and the naive roofline's errors. `by`: one of
// study::left_out_groups(); `effects`: of sources, where there are any.
void add_left_out_scores(const std::string& by, const std::vector<study::LeftOutPoint>& points,
                         std::vector<study::SourceEffect> effects, Report& report);

// Errors of the points that were fitted, by kind, as the files that were calibrated have the machines and as they were
// fitted: `before` and `after` of the JSON. They are no forecast.
void add_fitted_errors(const study::ScoreSummary& before, const study::ScoreSummary& after, Report& report);

// What a calibration learned of each group, as factors: `fitted` of the JSON.
void add_effects(const sim::PointCalibration& calibration, Report& report);

}  // namespace dculab::present
