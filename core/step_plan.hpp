// The list of operations of one engine step. The engine executes it, the simulator prices it.
#pragma once

#include <functional>
#include <vector>

#include "core/batch.hpp"
#include "core/engine_options.hpp"
#include "core/op.hpp"

namespace dculab {

// Layers of a kind are alike, so an op of Stage::layer stands once for each kind, with the number of its layers as its
// count. The ops of a kind are in order of execution; a model runs those of each layer's kind, layer by layer.
struct StepPlan {
  std::vector<Op> ops;
  Batch batch;
  AttentionSplit attention_split{};  // that is asked of the attention kernels
  KvRetention kv_retention{};        // which tokens the batch's sequences keep
  // In all rows, where of some only the likeliest can be drawn: samplers filter the rows of a step together.
  std::int64_t filtered_logits = 0;
};

// Fills in the ops of the step that advances `plan.batch`: model/plan_step.hpp.
using StepPlanner = std::function<void(StepPlan& plan)>;

[[nodiscard]] FlopCount total_flops(const StepPlan& plan);

}  // namespace dculab
