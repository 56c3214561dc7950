// Scores of an indexer: a product of queries and small keys, summed over heads as it is made, so that only sums are
// written. Source: DeepGEMM, fp8_mqa_logits and fp8_paged_mqa_logits.
#pragma once

#include "lower/device.hpp"
#include "lower/launch.hpp"

namespace dculab::lower {

// `op` is index_scores. A workgroup has all heads of a tile of queries, and a tile of keys.
void lower_index_scores(const Op& op, const Device& device, Launch& launch);

}  // namespace dculab::lower
