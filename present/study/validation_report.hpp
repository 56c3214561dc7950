// How `validate` shows rows, what is left out and why, and the errors over all rows and by group.
#pragma once

#include <string>
#include <vector>

#include "present/output/show.hpp"
#include "study/validate/points_set.hpp"
#include "study/validate/scores.hpp"

namespace dculab::present {

// What is not scored, with its reasons: lines of the heading, and `refused` and `not_priced` of the JSON.
void add_left_out_rows(const study::Scores& scores, Report& report);

// Those, then rows and errors. `worst`: the table shows only so many rows, the worst first; 0 = all, in the file's
// order. JSON and CSV have all.
void add_scores(const study::Scores& scores, int worst, Format format, Report& report);

// `--leave-one-out`: for each of `by` (study::left_out_groups()) a table: left out x kind with rows, errors, coverage
// and the naive roofline's errors. Points that are refused or not priced are listed and in no table. Throws InputError
// as study::predict_left_out.
void add_left_out_scores(study::PointSet& set, const std::vector<std::string>& by, Report& report);

// Errors of the points that were fitted, by kind, as the files that were calibrated have the machines and as `runs` has
// them: `before` and `after` of the JSON. They are no forecast.
void add_fitted_errors(study::PointSet& set, study::Runs& runs, Report& report);

// What a calibration learned of each group, as factors: `fitted` of the JSON.
void add_effects(const sim::PointCalibration& calibration, Report& report);

}  // namespace dculab::present
