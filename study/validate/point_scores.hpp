// Scores published points, on machines and stacks as their files have them or as others' points made them.
#pragma once

#include <set>
#include <string>

#include "study/validate/points_set.hpp"
#include "study/validate/scores.hpp"

namespace dculab::study {

// No rows yet; the points that are not scored, with their reasons.
[[nodiscard]] Scores left_out_points(const PointSet& set);

// Rows of the points that are scored; those that are not, with their reasons. `fitted`: ids that a calibration has
// seen.
[[nodiscard]] Scores score_points(const PointSet& set, Runs& runs, const std::set<std::string>& fitted);

// One row, as `runs` predicts it.
[[nodiscard]] ScoredRow score_point(const ReadPoint& read, Runs& runs, bool was_fitted);

}  // namespace dculab::study
