// How our kernels of critical blocks are cut: what they, their launchers and their prices go by.
#pragma once

#include <algorithm>
#include <bit>

namespace dculab::lower::dculab_cpu {

// A task of the choice has kBlocksOfChoiceTask blocks of a sequence and KV head. The sums of kChoiceHeads heads and
// kChoiceBlocks blocks stay in registers; in a group of fewer heads the others' places are idle.
inline constexpr int kBlocksOfChoiceTask = 128;
inline constexpr int kChoiceHeads = 4, kChoiceBlocks = 2;

}  // namespace dculab::lower::dculab_cpu

namespace dculab::lower::dculab_gpu {

inline constexpr int kBoundsThreads = 256;  // of a workgroup of all three kernels
inline constexpr int kBoundsChannels = 8;   // of a lane, of a key or of a block's bounds
inline constexpr int kBoundsMaxHeadDim = 256;

// Lanes that share a row: a power of two, of which the last may be idle.
[[nodiscard]] constexpr int bounds_row_lanes(int head_dim) {
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(head_dim / kBoundsChannels)));
}

// The upper bounds: a workgroup finds those of some blocks of a sequence and KV head. A lane multiplies for some query
// heads of the group; for those beyond them it takes the block's bounds again from its registers.
inline constexpr int kBoundedBlocks = 64;
inline constexpr int kBoundsLaneHeads = 8;  // at most

[[nodiscard]] constexpr int bounds_lane_heads(int group_size) {
  return std::min(kBoundsLaneHeads, static_cast<int>(std::bit_ceil(static_cast<unsigned>(group_size))));
}

// The choice: a workgroup goes over the upper bounds of a sequence and KV head once for each of their digits of eight
// bits, and once more to write the list.
inline constexpr int kChoiceDigits = 4;
inline constexpr int kChoicePasses = kChoiceDigits + 1;

}  // namespace dculab::lower::dculab_gpu
