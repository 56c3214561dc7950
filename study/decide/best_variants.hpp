// Which variant of a comparison is the best at each workload, whatever else is swept being at its best.
#pragma once

#include <vector>

#include "config/scenario_file.hpp"
#include "sim/hardware/machine.hpp"
#include "study/decide/preference.hpp"
#include "study/evaluate/compared_points.hpp"

namespace dculab::study {

struct BestVariant {
  std::vector<config::Override> choices;  // of the sweep, as the chosen variant has them
  std::vector<Evaluated> evaluated;       // the baseline first
  Verdict verdict;
};

// Whether an axis belongs to the workload; the others are at their best.
[[nodiscard]] bool is_of_workload(const config::Override& choice);

// By the rule of preference.hpp, for each workload that something fits. Empty where a figure was published, which is
// judged instead, and where variants run on machines or stacks of their own.
[[nodiscard]] std::vector<BestVariant> best_variants(const std::vector<ComparedPoint>& points,
                                                     const config::Scenario& scenario, const sim::Machine& machine);

}  // namespace dculab::study
