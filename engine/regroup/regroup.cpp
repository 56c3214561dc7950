#include "engine/regroup/regroup.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "engine/regroup/group_error.hpp"
#include "engine/regroup/head_merge.hpp"
#include "engine/regroup/key_norm_groups.hpp"
#include "engine/regroup/svd_merge.hpp"

namespace dculab::engine {
namespace {

// What is known of a layer.
struct LayerFacts {
  const ModelShape& shape;
  const WeightSlots& weights;
  const HeadStatistics* statistics;  // null without calibration

  [[nodiscard]] const kernels::WeightView& o_proj() const { return weights[WeightSlot::o_proj].weights[0]; }
  [[nodiscard]] SimilarityMatrix weight_products_of(std::size_t part) const {
    return weight_products(weights[WeightSlot::qkv_proj].weights[part], shape.heads(), shape.hidden_size);
  }
};

GroupError error_of(const LayerFacts& layer, LostError kind) {
  if (kind == LostError::weights) return mean_error(layer.weight_products_of(kK), layer.weight_products_of(kV));
  if (kind == LostError::svd) return svd_error(layer.shape, layer.statistics->moments(), layer.o_proj());
  return mean_error(layer.statistics->key_products(), layer.statistics->value_products());
}

// One call of an attention kernel serves neighbours of one size.
HeadGroups by_size(HeadGroups groups) {
  std::ranges::stable_sort(groups, {}, [](const std::vector<int>& group) { return group.size(); });
  return groups;
}

// The groups of every layer that lose least, of all choices with no more KV heads in all than asked for.
std::vector<HeadGroups> searched(const std::vector<LayerFacts>& layers, const RegroupOptions& options,
                                 std::vector<LayersPoint>& front) {
  std::vector<std::vector<GroupingPoint>> fronts;
  for (const LayerFacts& layer : layers)
    fronts.push_back(
        search_groups(layer.shape.heads().num_key_value_heads, error_of(layer, options.error), options.search));
  front = combine_fronts(fronts);
  const int most = options.num_key_value_heads * static_cast<int>(layers.size());
  const auto beyond = std::ranges::find_if(front, [most](const LayersPoint& point) { return point.kv_heads > most; });
  const LayersPoint& chosen = *(beyond - 1);  // one KV head in each layer is the front's first point
  std::vector<HeadGroups> groups;
  for (std::size_t i = 0; i < layers.size(); ++i) groups.push_back(by_size(fronts[i][chosen.choice[i]].groups));
  return groups;
}

HeadGroups grouped(const LayerFacts& layer, const RegroupOptions& options) {
  if (options.method == GroupingMethod::key_norm)
    return by_size(key_norm_groups(layer.statistics->key_products(), options.num_key_value_heads));
  if (options.method == GroupingMethod::similarity)
    return similar_groups(layer.statistics->similarity(options.similarity, layer.o_proj(), options.compared),
                          options.num_key_value_heads);
  return neighbour_groups(layer.shape.heads().num_key_value_heads, options.num_key_value_heads);
}

RegroupedLayer plan_layer(const LayerFacts& layer, const RegroupOptions& options, HeadGroups groups) {
  const int heads = layer.shape.heads().num_key_value_heads;
  RegroupedLayer result{.groups = std::move(groups), .weights = {}, .maps = {}, .similarity = {}, .neighbours = {}};
  if (layer.statistics == nullptr) return result;
  const SimilarityMatrix similarity =
      layer.statistics->similarity(options.similarity, layer.o_proj(), options.compared);
  const auto count = static_cast<int>(result.groups.size());
  if (heads % count == 0) result.neighbours = group_similarity(similarity, neighbour_groups(heads, count));
  result.similarity = group_similarity(similarity, result.groups);
  if (options.merge == HeadMerge::weighted) result.weights = layer.statistics->importance(layer.o_proj());
  if (count == heads) return result;
  if (options.merge == HeadMerge::fitted)
    result.factors = fitted_factors(layer.shape, layer.statistics->moments(), layer.o_proj(), result.groups);
  if (options.merge == HeadMerge::svd)
    result.maps = svd_maps(layer.shape, layer.statistics->moments(), layer.o_proj(), result.groups);
  return result;
}

}  // namespace

std::string_view name(GroupingMethod method) {
  constexpr std::array<std::string_view, kGroupingMethods.size()> kWords{"mean", "similarity", "key-norm", "qcqa"};
  return kWords[static_cast<std::size_t>(method)];
}

std::string_view name(HeadMerge merge) {
  constexpr std::array<std::string_view, kHeadMerges.size()> kWords{"mean", "weighted", "fitted", "svd"};
  return kWords[static_cast<std::size_t>(merge)];
}

std::string_view name(LostError error) {
  constexpr std::array<std::string_view, kLostErrors.size()> kWords{"weights", "activations", "svd"};
  return kWords[static_cast<std::size_t>(error)];
}

std::string_view name(HeadSimilarity similarity) {
  constexpr std::array<std::string_view, kHeadSimilarities.size()> kWords{"cosine", "norm", "distance", "svd"};
  return kWords[static_cast<std::size_t>(similarity)];
}

std::string_view name(ComparedHeads compared) {
  constexpr std::array<std::string_view, kComparedHeads.size()> kWords{"kv", "query", "output"};
  return kWords[static_cast<std::size_t>(compared)];
}

void require_possible(const ModelShape& shape, const RegroupOptions& options) {
  const int heads = shape.heads().num_key_value_heads, wanted = options.num_key_value_heads;
  if (options.method != GroupingMethod::qcqa) return require_divisor(shape, wanted);
  if (wanted < 1 || wanted > heads)
    throw InputError("layers of " + std::to_string(heads) + " KV heads can keep 1 to " + std::to_string(heads) +
                     " on average, not " + std::to_string(wanted));
}

Regrouping regroup(const ModelWeights& weights, const RegroupOptions& options,
                   std::span<const HeadStatistics> statistics) {
  require_possible(weights.shape, options);
  require_mergeable_heads(weights.shape);
  std::vector<LayerFacts> layers;
  for (std::size_t i = 0; i < weights.layers.size(); ++i)
    layers.push_back({weights.shape, weights.layers[i], statistics.empty() ? nullptr : &statistics[i]});
  Regrouping result;
  std::vector<HeadGroups> groups;
  if (options.method == GroupingMethod::qcqa) groups = searched(layers, options, result.front);
  std::vector<LayerMerge> merges;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    result.layers.push_back(
        plan_layer(layers[i], options, groups.empty() ? grouped(layers[i], options) : std::move(groups[i])));
    const RegroupedLayer& layer = result.layers.back();
    merges.push_back({layer.groups, layer.weights, layer.maps, layer.factors});
  }
  result.weights = merge_heads(weights, merges);
  return result;
}

}  // namespace dculab::engine
