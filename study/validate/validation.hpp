// Predicted against measured: the rows of published points or of traces, and what each was priced as.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/hardware/machine.hpp"
#include "sim/study/measured_run.hpp"
#include "sim/study/point_calibration.hpp"
#include "study/validate/scores.hpp"

namespace dculab::study {

// What was priced on a machine.
struct PricedOn {
  sim::Machine machine;
  std::vector<sim::MeasuredRun> measured_runs;
};

// To which assumed figures its runs' times are sensitive; nothing where it has none.
[[nodiscard]] std::optional<std::vector<sim::InputSensitivity>> input_sensitivities_of(const PricedOn& priced);

struct Validation {
  Scores scores;
  std::map<std::string, PricedOn> priced;  // by machine, which has that name, of points "MACHINE with PROGRAM"
  // Where points were learned from first:
  std::shared_ptr<const sim::PointCalibration> calibration{};
  std::ptrdiff_t seen = 0;  // of the points here: their errors are no forecast
  std::vector<std::string> warnings{};
};

// Both are CSV files (config/points_file.hpp). `calibrate_on`: none = machines and stacks as their files have them.
// Precondition: at least 1 of `points`. Throws InputError for a file that cannot be read, and where no point can be
// priced.
[[nodiscard]] Validation validate_points(const std::vector<std::string>& points,
                                         const std::vector<std::string>& calibrate_on = {});

// The steps of the traces that can be true as the machine predicts them. Throws InputError for a file that
// cannot be read, and where no step can be compared.
[[nodiscard]] Validation validate_traces(const std::vector<std::string>& traces, const sim::Machine& machine);

}  // namespace dculab::study
