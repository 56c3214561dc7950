// How H2O's pass over the keys is cut: what its launcher and its price go by.
#pragma once

#include <algorithm>
#include <bit>

#include "core/dtype.hpp"

namespace dculab::lower::dculab_gpu {

// A workgroup goes over the keys of a sequence and KV head, for one new token after the other. It keeps the scores of
// some query heads of the group in shared memory; where the whole context does not fit, of one head, chunk by chunk,
// and then it scores twice: once for the softmax, once to add to the sums.
inline constexpr int kScoresThreads = 256;
inline constexpr int kHeldScores = 8192;    // 32 KiB: two workgroups to a compute unit
inline constexpr int kScoresLaneHeads = 4;  // query heads that a lane multiplies, at most
inline constexpr int kScoresMaxHeadDim = 256;

// Query heads that are scored at once, of a group: a power of two. K is read again for the next ones.
[[nodiscard]] constexpr int scored_heads(int group_size, int context) {
  const int fitting = std::clamp(kHeldScores / std::max(1, context), 1, kScoresLaneHeads);
  return std::min(static_cast<int>(std::bit_floor(static_cast<unsigned>(fitting))),
                  static_cast<int>(std::bit_ceil(static_cast<unsigned>(group_size))));
}

// Lanes that share a key, 16 bytes each: a power of two, of which the last may be idle.
[[nodiscard]] constexpr int score_lanes(Dtype cache, int head_dim) {
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>((head_dim * bits(cache) + 127) / 128)));
}

}  // namespace dculab::lower::dculab_gpu
