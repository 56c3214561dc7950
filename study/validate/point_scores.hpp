// Scores published points: from the machine files alone, calibrated on other points, and each left out in its turn.
#pragma once

#include <set>
#include <string>

#include "sim/study/point_calibration.hpp"
#include "study/validate/points_set.hpp"
#include "study/validate/scores.hpp"

namespace dculab::study {

// No rows yet; the points that are not scored, with their reasons.
[[nodiscard]] Scores left_out_points(const PointSet& set);

// Rows of the points that are scored; those that are not, with their reasons. `calibration`: none = as the machine
// files have it; `fitted`: ids that it has seen.
[[nodiscard]] Scores score_points(const PointSet& set, const sim::PointCalibration* calibration,
                                  const std::set<std::string>& fitted);

// One row, predicted.
[[nodiscard]] ScoredRow score_point(const PointSet& set, const ReadPoint& read,
                                    const sim::PointCalibration* calibration, bool was_fitted);

// What the points of a file that can be scored teach, and their ids. Throws InputError when there are none.
[[nodiscard]] sim::PointCalibration calibrate_on(const PointSet& set, std::set<std::string>& used);

}  // namespace dculab::study
