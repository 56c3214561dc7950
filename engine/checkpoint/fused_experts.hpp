// Experts as transformers 5 holds them: those of a layer in two tensors, whatever the family calls them one by one.
#pragma once

#include <vector>

#include "engine/checkpoint/model_weights.hpp"
#include "engine/checkpoint/safetensors.hpp"

namespace dculab::engine {

// Lets slots of experts and routers whose tensors the checkpoint does not have show their part of
// "mlp.experts.gate_up_proj" [experts, 2 * width, hidden], all of gate before up, "mlp.experts.down_proj" [experts,
// hidden, width] and "mlp.gate.weight", where it has those. transformers writes them so with
// save_original_format=False. Source: transformers, conversion_mapping.py.
void use_fused_experts(const Checkpoint& checkpoint, const ModelShape& shape, std::vector<TensorSlot>& slots);

}  // namespace dculab::engine
