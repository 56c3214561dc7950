// What our engine sets aside on a GPU, beside activations, weights and KV: what latents expand to
// (latent_expansion.hpp), and partial results of decode attention.
#pragma once

#include <cstdint>

#include "core/units.hpp"
#include "lower/dculab_gpu/latent_tiling.hpp"
#include "model/model_shape.hpp"

namespace dculab::lower::dculab_gpu {

inline constexpr Bytes kMostExpanded{static_cast<double>(kMostExpandedBytes)};
// Where a step needs more, runs of its sequences are served one after the other.
inline constexpr Bytes kMostPartials{256.0 * (1 << 20)};

// What is expanded at a time, in values: latents of the activations' format, all others of F16. Of a model without
// latents nothing.
struct ExpandedSizes {
  std::int64_t latents = 0, rows = 0, heads = 0;  // heads: times tokens
  int blocks = 0;

  // `longest`: of the contexts; `most`: bytes of K and V, unless one head of such a context has more.
  ExpandedSizes(const ModelShape& shape, int longest, Bytes most);

  [[nodiscard]] Bytes memory(Dtype activation) const;
};

// Floats of partial results of one sequence's decode attention over a context of `longest_context` tokens,
[[nodiscard]] std::int64_t decode_partials(const ModelShape& shape, int longest_context, int partition_tokens);
// and of as many sequences as `most` has room for: one at least.
[[nodiscard]] std::int64_t all_partials(std::int64_t of_one, int max_num_seqs, Bytes most);

}  // namespace dculab::lower::dculab_gpu
