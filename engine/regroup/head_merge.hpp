// Multi-head to grouped-query attention: some KV heads of a layer become one, and the heads are put in that order.
#pragma once

#include <span>
#include <vector>

#include "engine/checkpoint/model_weights.hpp"
#include "engine/regroup/fitted_weights.hpp"
#include "engine/regroup/head_groups.hpp"
#include "engine/regroup/head_maps.hpp"

namespace dculab::engine {

struct LayerMerge {
  HeadGroups groups;            // of the KV heads, of any sizes
  std::vector<double> weights;  // [num_key_value_heads], >= 0: the share of each head in its group's; empty: equal
  std::vector<GroupMaps> maps;  // [groups], in the place of shares; empty: a mean
  HeadFactors factors{};        // in the place of shares, where they are not empty
};

// The model with a KV head for each group: its K and V are the weighted mean of the heads of its group, their sum with
// the factors, or what its maps make of them. The query heads follow their KV head: rows of q_proj and columns of
// o_proj change places, and absorb the way back where there are maps; with ALiBi they take their slopes along. Where
// every head is a group of its own, without maps, this is the same model. What does not change is shared with
// `weights`. Layers may have other numbers of groups than each other. What was calibrated on the K and V of the heads
// as they were, kv_scales and kv_calibration, is not of the new ones: it goes where any head changes. Throws InputError
// for a quantized model, and as require_mergeable_heads does. Precondition: one LayerMerge for each layer, each a
// partition of the KV heads.
[[nodiscard]] ModelWeights merge_heads(const ModelWeights& weights, std::span<const LayerMerge> layers);

// The shape of the model that merge_heads makes.
[[nodiscard]] ModelShape merged_shape(const ModelShape& shape, std::span<const LayerMerge> layers);

// Throws InputError unless `num_key_value_heads` divides the model's.
void require_divisor(const ModelShape& shape, int num_key_value_heads);

// Throws InputError where layers have no K and V of their own, or not all the same heads already, or K has a norm of
// all heads at once: with fewer heads it would be another norm.
void require_mergeable_heads(const ModelShape& shape);

}  // namespace dculab::engine
