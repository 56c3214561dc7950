#include "lower/dculab_gpu/step_buffers.hpp"

#include <algorithm>

#include "lower/dculab_gpu/paged_attention_tiling.hpp"

namespace dculab::lower::dculab_gpu {

ExpandedSizes::ExpandedSizes(const ModelShape& shape, int longest, Bytes most) {
  for (const LayerKind& kind : shape.kinds) {
    const Mla* const attention = kind.mla();
    if (attention == nullptr || longest == 0) continue;
    blocks = ceiling_quotient(longest, kExpandedBlock);
    latents = std::max<std::int64_t>(latents, std::int64_t{kExpandedPiece} * attention->latent_width());
    rows = std::max<std::int64_t>(rows, std::int64_t{kExpandedPiece} * attention->expanded_width());
    // Short contexts have all heads at once.
    const std::int64_t bytes = std::min(expanded_bytes(longest, attention->num_attention_heads),
                                        std::max(static_cast<std::int64_t>(most.value()), expanded_bytes(longest, 1)));
    heads = std::max(heads, bytes / expanded_bytes(1, 1) * kExpandedBlock);
  }
}

Bytes ExpandedSizes::memory(Dtype activation) const {
  return storage(activation, static_cast<double>(latents)) +
         storage(Dtype::f16,
                 static_cast<double>(rows) + static_cast<double>(heads) * (kExpandedHeadDim + kExpandedValueDim)) +
         Bytes(4.0 * blocks);
}

std::int64_t decode_partials(const ModelShape& shape, int longest_context, int partition_tokens) {
  const Heads heads = shape.heads();
  return paged_attention_workspace(1, heads.num_attention_heads, heads.head_dim, longest_context, partition_tokens);
}

std::int64_t all_partials(std::int64_t of_one, int max_num_seqs, Bytes most) {
  const auto fit = static_cast<std::int64_t>(most / Bytes(sizeof(float)));
  return std::min(of_one * max_num_seqs, std::max(of_one, fit));
}

}  // namespace dculab::lower::dculab_gpu
