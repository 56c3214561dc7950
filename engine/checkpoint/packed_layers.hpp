// The quantized matrices of a checkpoint, packed for the CPU kernels.
#pragma once

#include <vector>

#include "engine/checkpoint/model_weights.hpp"
#include "engine/checkpoint/safetensors.hpp"
#include "model/quantization_config.hpp"

namespace dculab::engine {

// Whether the slot is one of the matrices that quantization replaces: those of the layers, but for routers, and, if
// asked, lm_head.
[[nodiscard]] bool is_quantized_matrix(const TensorSlot& slot, bool lm_head);

// Whether the slot is in shape.quantization: such a matrix, of a part of the layers that the checkpoint quantizes.
[[nodiscard]] bool is_quantized_in(const ModelShape& shape, const TensorSlot& slot);

// "model.layers.0.mlp.up_proj" of "model.layers.0.mlp.up_proj.weight".
[[nodiscard]] std::string module_name(const TensorSlot& slot);

// Reads and packs the matrices of `slots`, fills their views and sets weights.shape.quantization to what is packed.
// Matrices that share an input (Q, K and V; gate and up) may each have an act-order of their own. Throws InputError as
// read_quantized_matrix() does.
void load_packed_layers(const Checkpoint& checkpoint, const QuantizationConfig& config,
                        const std::vector<TensorSlot>& slots, ModelWeights& weights);

}  // namespace dculab::engine
