// Which KV heads and block size of a sweep to choose on a machine, and the table that shows why.
#pragma once

#include <vector>

#include "cli/study/predicted_study.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/study/sensitivity.hpp"

namespace dculab::cli {

struct PricedPoint {
  const StudyPoint* point = nullptr;
  sim::StepPrice price;
  StepPlan plan;
};

// Adds the recommended KV heads and block size, and how the alternatives compare, to the report and to `json`; a line
// that there is nothing to choose when neither of the two varies. `own_kv_heads`: the model's, before the sweep.
void add_recommendation(const std::vector<PricedPoint>& points, int own_kv_heads, const sim::Machine& machine,
                        Report& report, Json& json);

// The same choice as a question to ask on `base` with other figures. Both must outlive it.
[[nodiscard]] sim::Question recommendation_of(const std::vector<PricedPoint>& points, const sim::Machine& base);

}  // namespace dculab::cli
