// What a study with `compare` answers: what the baseline and each variant cost at every point of the sweep, beside what
// was published about them, and which of them is the best.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "sim/calibration/input_sensitivity.hpp"
#include "sim/hardware/machine.hpp"
#include "study/decide/best_variants.hpp"
#include "study/evaluate/compared_points.hpp"
#include "study/validate/reported_figures.hpp"

namespace dculab::study {

// On one of the scenario's machines.
struct Comparison {
  sim::Machine machine;
  std::vector<ComparedPoint> points{};
  std::vector<ReportedScore> scores{};  // of what was published, at the points that it belongs to
  std::vector<BestVariant> best{};      // where nothing was published
  // Of all that fits and runs there; nothing: none does.
  std::optional<std::vector<sim::InputSensitivity>> input_sensitivities{};
};

// On each of them.
struct ComparisonStudy {
  std::vector<config::SweepPoint> sweep;  // which the machines' points refer to
  std::vector<Comparison> machines{};
};

// `machines`: by name or file. A variant, or a point of the sweep, runs the stack that it says, on the machine that it
// says. Precondition: scenario.compare. Throws InputError, for what was published of drafts alone among others.
[[nodiscard]] ComparisonStudy compare_variants(const config::Scenario& scenario,
                                               const std::vector<std::string>& machines);

}  // namespace dculab::study
