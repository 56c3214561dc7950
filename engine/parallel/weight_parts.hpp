// What a rank has of the weights of a model that several share.
//
// Megatron's split: rows (out-features) of what the heads, the MLP and the vocabulary come out of, columns
// (in-features) of what they go into; a bias behind a sum over the ranks is rank 0's alone. Where there are fewer KV
// heads than ranks, several ranks have the same. Experts that are divided by number are whole.
// Sources: Shoeybi et al. 2019, "Megatron-LM", section 3; vLLM, model_executor/layers/linear.py.
#pragma once

#include "engine/checkpoint/model_weights.hpp"

namespace dculab::engine {

// Weights for `part`, part_of() the shape of `whole`, of which rank `rank` has them; in memory of their own. Throws
// InputError where a packed matrix cannot be cut between groups, or where memory is short.
[[nodiscard]] ModelWeights part_of_weights(const ModelWeights& whole, const ModelShape& part, int rank);

}  // namespace dculab::engine
