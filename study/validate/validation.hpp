// Predicted against measured: the rows of published points or of traces, and what each was priced as.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/hardware/machine.hpp"
#include "sim/study/point_calibration.hpp"
#include "sim/study/recipe.hpp"
#include "study/validate/scores.hpp"

namespace dculab::study {

// What was priced on a machine.
struct PricedOn {
  sim::Machine machine;
  std::vector<sim::Recipe> recipes;
};

struct Validation {
  Scores scores;
  std::map<std::string, PricedOn> priced;  // by machine, of points "MACHINE with PROGRAM"
  // Where points were learned from first:
  std::optional<sim::PointCalibration> calibration{};
  std::size_t fitted_points = 0;  // that it learned from
  std::ptrdiff_t seen = 0;        // of the points here: their errors are no forecast
};

// `points` and `calibrate_on` are CSV files (config/points_file.hpp); `calibrate_on` may be empty. Throws InputError
// for a file that cannot be read or has no point that can be priced.
[[nodiscard]] Validation validate_points(const std::string& points, const std::string& calibrate_on);

// The steps of the traces that can be true as the machine predicts them. Throws InputError for a file that
// cannot be read.
[[nodiscard]] Validation validate_traces(const std::vector<std::string>& traces, const sim::Machine& machine);

}  // namespace dculab::study
