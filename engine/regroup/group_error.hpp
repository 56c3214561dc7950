// What is lost where one KV head stands for a group of them.
#pragma once

#include <functional>
#include <vector>

#include "engine/regroup/head_groups.hpp"
#include "engine/regroup/head_moments.hpp"
#include "kernels/ops.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

// Of a group of heads, ascending, a share of all that a layer has: 0 for one head; the sum over all groups is at
// most 1.
using GroupError = std::function<double(const std::vector<int>& heads)>;

// `products`, [heads, heads]: a . b of heads a and b, summed over tokens, or of their weights. A group whose head is
// the mean loses the sum over its heads of |a - mean|^2. K and V count alike: the mean of their shares.
// Of weights it is the weight-sharing error of QCQA (arXiv:2406.10247).
[[nodiscard]] GroupError mean_error(const SimilarityMatrix& key_products, const SimilarityMatrix& value_products);

// What HeadMerge::svd loses: svd_maps. `o_proj`: [hidden_size, query_width].
[[nodiscard]] GroupError svd_error(const ModelShape& shape, const HeadMoments& moments,
                                   const kernels::WeightView& o_proj);

// Of the rows of K or V, [num_heads * head_dim, columns].
[[nodiscard]] SimilarityMatrix weight_products(const kernels::WeightView& rows, const Heads& heads, int columns);

}  // namespace dculab::engine
