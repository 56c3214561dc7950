#include "engine/regroup/regroup.hpp"

#include "engine/regroup/head_merge.hpp"
#include "engine/regroup/svd_merge.hpp"

namespace dculab::engine {
namespace {

RegroupedLayer plan_layer(const ModelShape& shape, const RegroupOptions& options, const WeightSlots& layer,
                          const HeadStatistics* statistics) {
  RegroupedLayer result{.groups = neighbour_groups(shape.heads().num_key_value_heads, options.num_key_value_heads),
                        .weights = {},
                        .maps = {},
                        .similarity = {},
                        .neighbours = {}};
  if (statistics == nullptr) return result;
  const SimilarityMatrix similarity = statistics->similarity(options.similarity, layer[WeightSlot::o_proj].weights[0]);
  result.neighbours = group_similarity(similarity, result.groups);
  if (options.method == GroupingMethod::similarity)
    result.groups = similar_groups(similarity, options.num_key_value_heads);
  result.similarity = group_similarity(similarity, result.groups);
  if (options.merge == HeadMerge::weighted)
    result.weights = statistics->importance(layer[WeightSlot::o_proj].weights[0]);
  if (options.merge == HeadMerge::svd && options.num_key_value_heads < shape.heads().num_key_value_heads)
    result.maps = svd_maps(shape, statistics->moments(), layer[WeightSlot::o_proj].weights[0], result.groups);
  return result;
}

}  // namespace

Regrouping regroup(const ModelWeights& weights, const RegroupOptions& options,
                   std::span<const HeadStatistics> statistics) {
  require_divisor(weights.shape, options.num_key_value_heads);
  Regrouping result;
  std::vector<LayerMerge> merges;
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    result.layers.push_back(
        plan_layer(weights.shape, options, weights.layers[i], statistics.empty() ? nullptr : &statistics[i]));
    merges.push_back({result.layers[i].groups, result.layers[i].weights, result.layers[i].maps});
  }
  result.weights = merge_heads(weights, merges);
  return result;
}

}  // namespace dculab::engine
