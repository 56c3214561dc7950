// Scores of an indexer: a product of queries and small keys, summed over heads as it is made, so that only sums are
// written: each score is cut off, weighted and added by the vector units. Source: DeepGEMM, fp8_mqa_logits and
// fp8_paged_mqa_logits.
//
// A program that launches the kernel from a graph gives it room for the longest context that the graph serves. DeepGEMM
// stops at each sequence's last entry. `scored_entries` are those of a kernel that does not: beyond the last one it
// reads the same block of the cache over and over.
#pragma once

#include "lower/device.hpp"
#include "lower/launch.hpp"

namespace dculab::lower {

// `op` is index_scores. A workgroup has all heads of a tile of queries, and a tile of keys. scored_entries: of each
// sequence, where all of them decode; 0: those that it has.
void lower_index_scores(const Op& op, double scored_entries, const Device& device, Launch& launch);

}  // namespace dculab::lower
