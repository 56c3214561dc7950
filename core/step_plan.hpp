// The list of operations of one engine step. The engine executes it, the simulator prices it.
#pragma once

#include <vector>

#include "core/batch.hpp"
#include "core/engine_options.hpp"
#include "core/model_shape.hpp"
#include "core/op.hpp"

namespace dculab {

// Ops in order of execution. Layers are alike, so an op of Stage::layer stands once, with count = number of layers.
struct StepPlan {
  std::vector<Op> ops;
  Batch batch;
  AttentionSplit attention_split;  // that is asked of the attention kernels
  // In all rows, where of some only the likeliest can be drawn: samplers filter the rows of a step together.
  std::int64_t filtered_logits = 0;
};

// Plans the step that advances `batch` by its new tokens. A batch may mix prefills and decodes.
// Preconditions: problems(model) and problems(options) are empty; every slice has num_new_tokens >= 1.
[[nodiscard]] StepPlan plan_step(const ModelShape& model, const EngineOptions& options, Batch batch);

// Re-uses `plan`'s storage; the same result as plan_step. For sweeps and serving loops that price many steps.
void plan_step_into(StepPlan& plan, const ModelShape& model, const EngineOptions& options);

[[nodiscard]] FlopCount total_flops(const StepPlan& plan);

}  // namespace dculab
