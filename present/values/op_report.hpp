// The ops of a priced step: what they are called in tables, and as JSON.
#pragma once

#include "model/model_shape.hpp"
#include "present/output/report.hpp"
#include "sim/cost/step_price.hpp"

namespace dculab::present {

// "qkv_proj", or "qkv_proj, window 4096" where the model has several kinds of layers.
[[nodiscard]] std::string op_label(const Op& op, const ModelShape& model);

// One entry for each op of the plan: `op`, `count`, `seconds`, `bound`, `flops`, `bytes` and `hit_rate` by memory
// level, `effective_latency_seconds`; `layer_kind`, an index, of an op of a layer where the model has several kinds.
// Times, FLOP and bytes are of all executions.
[[nodiscard]] Json ops_json(const StepPlan& plan, const sim::StepPrice& price, const sim::Machine& machine);

}  // namespace dculab::present
