// Golden models have heads of 8 or 16 values, GPU kernels serve 32 and more: the same model with wider heads.
#pragma once

#include "engine/checkpoint/model_weights.hpp"

namespace dculab::engine {

// Heads four times as wide, which compute the same: value i of a head becomes value 4 i, and those between are zeros.
// Rotary embedding turns value 4 i of 4 d as it turned value i of d; the query, and its bias, are doubled, because
// scores are divided by the root of the head size. All of that is exact. Quantized weights in groups keep their scales.
[[nodiscard]] ModelWeights with_wide_heads(const ModelWeights& weights);

}  // namespace dculab::engine
