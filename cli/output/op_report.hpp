// The ops of a priced step: what limits them, and all of them as JSON.
#pragma once

#include "cli/output/output.hpp"
#include "sim/cost/step_price.hpp"

namespace dculab::cli {

// What limits most of the step: the bound with the largest share of its time.
[[nodiscard]] std::string step_bound(const sim::StepPrice& price, const sim::Machine& machine);

// One entry for each op of the plan: `op`, `count`, `seconds`, `bound`, `flops`, `bytes` and `hit_rate` by memory
// level, `effective_latency_seconds`. Times, FLOP and bytes are of all executions.
[[nodiscard]] Json ops_json(const StepPlan& plan, const sim::StepPrice& price, const sim::Machine& machine);

}  // namespace dculab::cli
