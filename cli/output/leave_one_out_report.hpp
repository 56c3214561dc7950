// How `validate --leave-one-out` shows its errors.
#pragma once

#include <string>
#include <vector>

#include "cli/output/output.hpp"
#include "study/validate/points_set.hpp"

namespace dculab::cli {

// For each of `by` (study::left_out_groups()) a table: left out x kind with rows, errors, coverage and the naive
// roofline's errors. Points that are refused or not priced are listed and in no table. Throws InputError as
// study::predict_left_out.
void add_left_out_scores(const study::PointSet& set, const std::vector<std::string>& by, Report& report);

}  // namespace dculab::cli
