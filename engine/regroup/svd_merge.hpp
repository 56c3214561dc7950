// Which maps let one KV head stand for several with the least error: a singular value decomposition of their K and V.
#pragma once

#include <vector>

#include "engine/regroup/head_groups.hpp"
#include "engine/regroup/head_maps.hpp"
#include "engine/regroup/head_moments.hpp"
#include "kernels/ops.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

// SVD-a of Yu et al., "Effectively Compress KV Heads for LLM" (arXiv:2406.07056): the shared head keeps those head_dim
// directions of the group's stacked activations in which they are largest, and Q and O absorb the way back. Here the
// activations are weighed by what becomes of their error, E the mean over tokens, s the shared head:
//   V: sum over heads h of E|O_h (v_h - decode_h s)|^2. Any linear map.
//   K: sum over heads h of E(q . (k_h - decode_h s))^2, with Q and K taken as independent of each other.
//      With RoPE only what commutes with its rotations can move into Q. In each plane K is a complex number x + iy, and
//      each head has a complex factor: RoRoPE of Meng et al. (arXiv:2502.07864).
//      With ALiBi any linear map. The mean key counts for nothing: it adds the same to all scores of a query.
// Of all maps that lose as little, those of which decode is, on the whole, nearest to copying: heads that are equal
// become what they are.
// One for each group. `o_proj`: [hidden_size, query_width], not packed.
[[nodiscard]] std::vector<GroupMaps> svd_maps(const ModelShape& shape, const HeadMoments& moments,
                                              const kernels::WeightView& o_proj, const HeadGroups& groups);

// The mean of that of K and that of V: 1 - what two heads lose by this merge / the mean over heads of all there is.
[[nodiscard]] SimilarityMatrix svd_similarity(const ModelShape& shape, const HeadMoments& moments,
                                              const kernels::WeightView& o_proj);

}  // namespace dculab::engine
