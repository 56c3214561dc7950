// The points of a study with `compare`: what the baseline and each variant cost.
#pragma once

#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "study/evaluate/variant_cost.hpp"

namespace dculab::study {

// One point of the sweep on one machine: what each variant costs, the baseline first.
struct ComparedPoint {
  const config::SweepPoint* point = nullptr;
  std::vector<VariantCost> costs;  // [1 + variants]
};

// Each of `sweep` on `listed`, one of the scenario's machines, whose name or file is `name`. Variants and points may
// have machines of their own. Throws InputError.
[[nodiscard]] std::vector<ComparedPoint> compared_points(const config::Scenario& scenario,
                                                         const std::vector<config::SweepPoint>& sweep,
                                                         const std::string& name, const sim::Machine& listed);

}  // namespace dculab::study
