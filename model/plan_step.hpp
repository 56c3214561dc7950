// The ops of a step of a model, in order.
#pragma once

#include "core/step_plan.hpp"
#include "model/model_shape.hpp"

namespace dculab {

// Plans the step that advances `batch` by its new tokens. A batch may mix prefills and decodes.
// Preconditions: problems(model) and problems(options) are empty; every slice has num_new_tokens >= 1.
[[nodiscard]] StepPlan plan_step(const ModelShape& model, const EngineOptions& options, Batch batch);

// Re-uses `plan`'s storage; the same result as plan_step. For sweeps and serving loops that price many steps.
void plan_step_into(StepPlan& plan, const ModelShape& model, const EngineOptions& options);

// The same as a function; both must outlive it.
[[nodiscard]] StepPlanner planner_of(const ModelShape& model, const EngineOptions& options);

}  // namespace dculab
