// ALiBi's slopes as attention kernels take them.
#pragma once

#include <vector>

#include "kernels/alibi.hpp"
#include "model/layer_kind.hpp"

namespace dculab::engine {

// [num_attention_heads], scaled as the layer has them; empty with rotary embedding.
[[nodiscard]] inline std::vector<float> alibi_slopes(const Gqa& attention) {
  if (attention.position.kind != PositionKind::alibi) return {};
  std::vector<float> slopes = kernels::alibi_slopes(attention.heads.num_attention_heads);
  for (float& slope : slopes) slope *= static_cast<float>(attention.position.alibi_scale);
  if (attention.position.alibi_heads.empty()) return slopes;
  std::vector<float> moved;
  for (const int head : attention.position.alibi_heads) moved.push_back(slopes[static_cast<std::size_t>(head)]);
  return moved;
}

}  // namespace dculab::engine
