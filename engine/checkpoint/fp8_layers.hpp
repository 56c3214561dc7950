// The FP8 matrices of a checkpoint, with the scales of their blocks, rows or whole.
//
// Tensors: `weight` F8_E4M3 [rows, columns] and `weight_scale_inv` (DeepSeek, Qwen3) or `weight_scale`
// (compressed-tensors) F32, BF16 or F16, which weights are multiplied by: [row blocks, column blocks], [rows] or
// [rows, 1], or one value. Scales of activations are not read: activations stay as they are.
#pragma once

#include <filesystem>
#include <vector>

#include "engine/checkpoint/model_weights.hpp"
#include "engine/checkpoint/safetensors.hpp"

namespace dculab::engine {

// Whether the engine runs the layers' matrices as the checkpoint has them, in E4M3.
[[nodiscard]] bool has_fp8_layers(const ModelShape& shape);

// Points the views of `slots` to the values in the file and to their scales, which get memory of their own. `folder`
// has the config.json that says how large blocks are. Throws InputError naming file and tensor: missing, of another
// dtype or shape, NaN.
void load_fp8_layers(const std::filesystem::path& folder, const Checkpoint& checkpoint,
                     const std::vector<TensorSlot>& slots, ModelWeights& weights);

}  // namespace dculab::engine
