#include "engine/regroup/mean_pool.hpp"

#include <vector>

#include "engine/regroup/head_merge.hpp"

namespace dculab::engine {

ModelWeights regrouped(const ModelWeights& weights, int kv_heads) {
  require_divisor(weights.shape, kv_heads);
  if (kv_heads == weights.shape.heads().num_key_value_heads) return weights;
  const LayerMerge neighbours{neighbour_groups(weights.shape.heads().num_key_value_heads, kv_heads), {}, {}};
  return merge_heads(weights, std::vector<LayerMerge>(weights.layers.size(), neighbours));
}

}  // namespace dculab::engine
