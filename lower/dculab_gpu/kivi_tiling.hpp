// How the GPU's kernels of a kivi4 or kivi2 cache are cut: what their launchers and their prices go by.
#pragma once

#include <algorithm>
#include <bit>

#include "core/kv/kivi.hpp"
#include "lower/dculab_gpu/geometry.hpp"
#include "lower/dculab_gpu/paged_attention_tiling.hpp"

namespace dculab::lower::dculab_gpu {

// Of both that write: a lane of quantize_groups has a unit at a time, one of keep_residual eight values.
inline constexpr int kKiviThreads = 256;

// Lanes of a workgroup of quantize_groups, which has a group of tokens of one KV head: head_dim units of K, as many of
// V.
[[nodiscard]] constexpr int kivi_group_threads(int head_dim) {
  return std::min(kKiviThreads, ceiling_quotient(2 * head_dim, 64) * 64);
}

// Of decode attention, whose lanes hold 4 bytes of codes of K, then of V: 8 or 16 of them. A workgroup has as many
// query heads of a group as a lane has sums for; more of them are divided, and the parts load the same K and V.
struct KiviTiling {
  int token_lanes = 0;  // lanes that hold a token's V: a power of two, of which the last may be idle
  int lane_heads = 0;   // query heads that each lane serves: 1, 2 or 4
  int heads = 0;        // of a workgroup, at most lane_heads
  int parts = 0;        // workgroups that share the query heads
};

[[nodiscard]] constexpr KiviTiling tile_kivi_attention(Dtype cache, int head_dim, int query_heads) {
  const auto power_of_two = [](int value) { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(value))); };
  const int values = 32 / bits(cache);  // in 4 bytes
  KiviTiling tiling;
  tiling.token_lanes = power_of_two(head_dim / values);
  tiling.parts = ceiling_quotient(query_heads, kPagedAttentionLaneSums / values);
  tiling.heads = ceiling_quotient(query_heads, tiling.parts);
  tiling.lane_heads = power_of_two(tiling.heads);
  return tiling;
}

}  // namespace dculab::lower::dculab_gpu
