// How every executor walks a step plan: its ops in order, a layer's once a layer, each with the weights in its slot and
// the buffers that it names.
#pragma once

#include <stdexcept>
#include <string>

#include "core/step_plan.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

// The kind of layer that an op of a plan for `shape` runs for.
[[nodiscard]] inline const LayerKind& layer_of(const Op& op, const ModelShape& shape) {
  return shape.kinds[op.layer_kind];
}

// Of the norms of latents, whatever rms_norm_eps is.
// Source: transformers, models/deepseek_v3/modeling_deepseek_v3.py, DeepseekV3RMSNorm.
inline constexpr float kLatentNormEpsilon = 1e-6F;

// The latent attention of the layer that an op runs for. Throws std::invalid_argument where it has none.
[[nodiscard]] const Mla& latents_of(const Op& op, const ModelShape& shape);

// Values of a row of `buffer` in layers of a kind; 0 where they have no use for it. Rows of logits are those that are
// asked for.
[[nodiscard]] int width(const ModelShape& shape, const LayerKind& kind, Buffer buffer);

// Rows of every other buffer: one, or of what experts read and write one for each expert that a token goes to.
[[nodiscard]] int rows_per_token(const LayerKind& kind, Buffer buffer);

// The most over all kinds.
[[nodiscard]] int width(const ModelShape& shape, Buffer buffer);
[[nodiscard]] int rows_per_token(const ModelShape& shape, Buffer buffer);

[[nodiscard]] constexpr std::size_t index(Buffer buffer) { return static_cast<std::size_t>(buffer); }
[[nodiscard]] constexpr std::size_t index(WeightSlot slot) { return static_cast<std::size_t>(slot); }

// That the op's buffers have rows of its shape: k values in, or n where k is 0, and n out.
void require_buffers(const Op& op, const ModelShape& shape);

// Calls execute(index) for the plan's ops of `stage`, in order: where that is a layer, for those of its kind.
template <class Execute>
void walk_stage(const StepPlan& plan, const ModelShape& shape, Stage stage, int layer, Execute&& execute) {
  const std::uint8_t kind = stage == Stage::layer ? shape.layers[static_cast<std::size_t>(layer)] : 0;
  for (std::size_t index = 0; index < plan.ops.size(); ++index)
    if (plan.ops[index].stage == stage && plan.ops[index].layer_kind == kind) execute(index);
}

// That the op is executed as often as the model has layers for it.
void require_depth(const Op& op, const ModelShape& shape);

// A plan that was not made for an executor's model is a mistake of the program, not of its user. Throws
// std::invalid_argument: "plan: op 'o_proj' has another shape".
inline void require(bool holds, const Op& op, const char* what) {
  if (!holds) throw std::invalid_argument("plan: op '" + std::string(op.name) + "' " + what);
}

}  // namespace dculab::engine
