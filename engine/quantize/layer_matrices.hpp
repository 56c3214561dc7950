// Which matrices of a layer read the same input, hence share a matmul and a Hessian.
#pragma once

#include <span>
#include <vector>

#include "engine/checkpoint/model_weights.hpp"

namespace dculab::engine {

// The matrices that one matmul op finds in its weight slot: Q, K and V.
struct LayerMatmul {
  WeightSlot weight;
  std::vector<TensorSlot> slots;
};

// In the order in which a step runs them. The slots' views point into `weights`.
[[nodiscard]] std::vector<LayerMatmul> layer_matmuls(ModelWeights& weights, int layer);

// The slots of each tensor: one slot, or those of Q, K and V where they are fused.
[[nodiscard]] std::vector<std::span<const TensorSlot>> tensors_of(const LayerMatmul& matmul);

// The tensor [tensor_rows, columns] that the slots make up. Precondition: their views are F32.
[[nodiscard]] std::vector<float> joined_rows(std::span<const TensorSlot> tensor);

// The slot's rows [rows, columns] of the tensor's values [tensor_rows, columns].
[[nodiscard]] std::vector<float> rows_of(const TensorSlot& slot, std::span<const float> tensor);

}  // namespace dculab::engine
