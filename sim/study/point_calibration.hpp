// Fits a machine to published figures, and says how far a prediction of another such figure can be trusted.
//
// Each point is one row with sigma = 0.15, what the cost law itself is taken to leave out: publications do not say
// their spread. The interval factor is conformal, from five-fold cross-validation, as for traces.
// A point is interpolated when points of its kind were fitted and it lies in the box of their sizes.
#pragma once

#include <span>
#include <string>

#include "sim/calibration/confidence.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/study/recipe.hpp"

namespace dculab::sim {

struct MeasuredRecipe {
  std::string kind;  // points of a kind are comparable: "decode_rate"
  Recipe recipe;
  Seconds time;
};

// Preconditions: at least 1 point; none is below its recipe_floor.
[[nodiscard]] Machine calibrate_to_points(const Machine& base, std::span<const MeasuredRecipe> points);

// 90 % interval of the time, never below the floor.
[[nodiscard]] Confidence recipe_confidence(const Machine& machine, const std::string& kind, const Recipe& recipe,
                                           Seconds predicted);

}  // namespace dculab::sim
