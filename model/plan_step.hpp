// The ops of a step of a model, in order, and which options a model can be run with.
#pragma once

#include <string>
#include <vector>

#include "core/activation_mode.hpp"
#include "core/step_plan.hpp"
#include "model/model_shape.hpp"

namespace dculab {

// Why the layers of `model` cannot take activations so ("needs ..., and ...; what to do"); empty when they can.
[[nodiscard]] std::string problem(ActivationMode mode, const ModelShape& model);

// Why the KV cache of `model` cannot be stored and kept so; empty when it can.
[[nodiscard]] std::vector<std::string> kv_problems(const KvChoice& choice, const ModelShape& model);

// Why `model` cannot be served with the options; empty when it can. Precondition: problems(options) is empty.
[[nodiscard]] std::vector<std::string> problems(const EngineOptions& options, const ModelShape& model);

// Plans the step that advances `batch` by its new tokens. A batch may mix prefills and decodes.
// Preconditions: problems(model), problems(options) and problems(options, model) are empty; every slice has
// num_new_tokens >= 1.
[[nodiscard]] StepPlan plan_step(const ModelShape& model, const EngineOptions& options, Batch batch);

// Re-uses `plan`'s storage; the same result as plan_step. For sweeps and serving loops that price many steps.
void plan_step_into(StepPlan& plan, const ModelShape& model, const EngineOptions& options);

// The same as a function; both must outlive it.
[[nodiscard]] StepPlanner planner_of(const ModelShape& model, const EngineOptions& options);

}  // namespace dculab
