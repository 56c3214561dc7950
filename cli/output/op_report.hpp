// The ops of a priced step as JSON.
#pragma once

#include "cli/output/output.hpp"
#include "sim/cost/step_price.hpp"

namespace dculab::cli {

// One entry for each op of the plan: `op`, `count`, `seconds`, `bound`, `flops`, `bytes` and `hit_rate` by memory
// level, `effective_latency_seconds`. Times, FLOP and bytes are of all executions.
[[nodiscard]] Json ops_json(const StepPlan& plan, const sim::StepPrice& price, const sim::Machine& machine);

}  // namespace dculab::cli
