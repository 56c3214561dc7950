// ALiBi's slopes as attention kernels take them.
#pragma once

#include <vector>

#include "kernels/alibi.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

// [num_attention_heads], scaled as the model has them; empty with rotary embedding.
[[nodiscard]] inline std::vector<float> alibi_slopes(const ModelShape& shape) {
  if (shape.position != PositionKind::alibi) return {};
  std::vector<float> slopes = kernels::alibi_slopes(shape.num_attention_heads);
  for (float& slope : slopes) slope *= static_cast<float>(shape.alibi_scale);
  return slopes;
}

}  // namespace dculab::engine
