// `validate --leave-one-out`: the points of each machine (or family of them, or program) predicted from those of all
// others, beside the naive roofline.
#pragma once

#include <string>
#include <vector>

#include "cli/output/output.hpp"
#include "cli/validation/points_set.hpp"

namespace dculab::cli {

// What can be left out: "machine", "family" (sim/compute/gpu_family.hpp), "software".
[[nodiscard]] const std::vector<std::string>& left_out_groups();

// For each of `by` a table: left out x kind with rows, errors (of times: ScoredRow::time_error), coverage and the naive
// roofline's errors. Programs are left out with all their versions. Points that are refused or not priced are listed
// and in no table. Throws InputError when the points have fewer than two of what is left out.
void add_left_out_scores(const PointSet& set, const std::vector<std::string>& by, Report& report);

}  // namespace dculab::cli
