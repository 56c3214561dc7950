// Groups whose sizes follow the norms of their keys.
#pragma once

#include <span>
#include <vector>

#include "engine/regroup/head_groups.hpp"

namespace dculab::engine {

// `total` shared out in proportion to `parts`, at least one each: the largest remainders are rounded up, of equal ones
// the first. Where all parts are 0, evenly. Precondition: total >= parts.size() >= 1; parts are not negative.
[[nodiscard]] std::vector<int> shared_out(int total, std::span<const double> parts);

// Key-distributed grouping of Khan et al. (arXiv:2408.08454): the keys of neighbouring heads are pooled into
// `num_groups`, and each gets as many query heads as the norm of its key is of all norms. Here, where a model's weights
// are merged once and for all, the heads that go by a KV head are then also those that it is pooled from: neighbours.
// `key_products`, [heads, heads]: k_a . k_b summed over tokens; a pooled key's norm is the root of its mean square.
// Precondition: num_groups divides the number of heads.
[[nodiscard]] HeadGroups key_norm_groups(const SimilarityMatrix& key_products, int num_groups);

}  // namespace dculab::engine
