// Which variant of a comparison is the fastest, with block size and attention's split at their best. Accuracy is not
// weighed.
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

// Whether an axis is part of the question: models, formats, workloads. The others change speed alone, and are at their
// best.
[[nodiscard]] bool is_asked(const config::Override& choice);

// By the rule of preference.hpp, for each value of the axes that are asked about, where something fits. Empty where a
// figure was published, which is judged instead, and where variants run on machines or stacks of their own.
[[nodiscard]] std::vector<BestVariant> best_variants(const std::vector<ComparedPoint>& points,
                                                     const config::Scenario& scenario, const sim::Machine& machine);

}  // namespace dculab::study
