// How decode attention is cut into workgroups and lanes: what the launcher goes by, and whoever wants to know before a
// launch. Plain functions, the same for every build.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/dtype.hpp"

namespace dculab::lower::dculab_gpu {

inline constexpr int kPagedAttentionThreads = 256;
inline constexpr int kPagedAttentionMaxHeadDim = 256;
// Sums of V that a lane keeps in registers: with 64, gfx906 would spill where 128 registers allow two waves per SIMD.
inline constexpr int kPagedAttentionLaneSums = 32;

// Partitions of the longest context; 1 for a single pass.
[[nodiscard]] constexpr int paged_attention_partitions(int max_context_len, int partition_tokens) {
  return partition_tokens == 0 ? 1 : std::max(1, (max_context_len + partition_tokens - 1) / partition_tokens);
}

// Floats that PagedAttention::workspace needs: a numerator per value of each head and partition, a maximum and a sum.
[[nodiscard]] constexpr std::int64_t paged_attention_workspace(int num_seqs, int num_heads, int head_dim,
                                                               int max_context_len, int partition_tokens) {
  const int partitions = paged_attention_partitions(max_context_len, partition_tokens);
  return partitions == 1 ? 0 : std::int64_t{num_seqs} * num_heads * partitions * (head_dim + 2);
}

// How the lanes of a workgroup share its work.
struct PagedAttentionTiling {
  int token_lanes = 0;  // lanes that hold one token's K or V of a head, 16 bytes each
  int lane_heads = 0;   // query heads that each lane serves: 1, 2 or 4
  int team = 0;         // groups of token_lanes that divide the query heads and hand each other K and V; 1: none do
};

[[nodiscard]] constexpr PagedAttentionTiling tile_paged_attention(Dtype cache, int head_dim, int heads_per_workgroup) {
  const auto power_of_two = [](int value) { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(value))); };
  const int values = 128 / bits(cache);  // in 16 bytes
  PagedAttentionTiling tiling;
  tiling.token_lanes = power_of_two(std::max(32, head_dim) / values);
  tiling.lane_heads = std::min(power_of_two(heads_per_workgroup), std::max(1, kPagedAttentionLaneSums / values));
  tiling.team = power_of_two((heads_per_workgroup + tiling.lane_heads - 1) / tiling.lane_heads);
  return tiling;
}

}  // namespace dculab::lower::dculab_gpu
