// Calibrated scales of an FP8 KV cache, as checkpoints carry them: one value each for the keys and the values of a
// layer, beside the weights of its attention.
//
// Names: "model.layers.0.self_attn.k_scale" and "v_scale" (compressed-tensors, and what we write); also "attn.k_scale"
// (vLLM's own) and "k_proj.k_scale" (ModelOpt) there. Source: vLLM, model_loader/weight_utils.py,
// maybe_remap_kv_scale_name.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/checkpoint/model_weights.hpp"
#include "engine/checkpoint/safetensors.hpp"

namespace dculab::engine {

// [num_hidden_layers]; empty where the checkpoint has none. Layers that read the K and V of an earlier one have its
// scales. Throws InputError for a scale that is missing beside others, not one value, or not finite and above 0.
[[nodiscard]] std::vector<kernels::Fp8KvScales> read_kv_scales(const Checkpoint& checkpoint, ModelWeights& weights);

// The tensors that read_kv_scales() reads again, by name. Precondition: one entry of `scales` for each layer, or
// none.
[[nodiscard]] std::map<std::string, float> kv_scale_tensors(ModelWeights& weights,
                                                            const std::vector<kernels::Fp8KvScales>& scales);

}  // namespace dculab::engine
