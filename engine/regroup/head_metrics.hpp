// What an error of K or V of a head does: how it weighs in scores, and in the residual stream.
#pragma once

#include <vector>

#include "engine/regroup/head_moments.hpp"
#include "kernels/ops.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

// [num_key_value_heads] of [head_dim, head_dim], symmetric.
using HeadMetrics = std::vector<std::vector<double>>;

// Of V: the sum over the query heads of a KV head of O^T O, O their columns of o_proj [hidden_size, query_width].
[[nodiscard]] HeadMetrics output_metrics(const ModelShape& shape, const kernels::WeightView& o_proj);

// Of K: the sum over the query heads of a KV head, and over tokens, of q q^T.
[[nodiscard]] HeadMetrics query_metrics(const ModelShape& shape, const HeadMoments& moments);

}  // namespace dculab::engine
