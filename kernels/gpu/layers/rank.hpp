// The order in which numbers are chosen: the largest first, of equal ones the lower index.
#pragma once

#include <cstdint>

#include "kernels/gpu/runtime.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// A number and its place, ordered as one integer: the larger number comes first, of equal ones (-0 and +0 are) the one
// with the lower index; NaN comes after every number. 0 comes after everything.
using Rank = std::uint64_t;

__device__ __forceinline__ Rank rank_of(float value, int index) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value + 0.0F);  // -0 becomes +0
  const std::uint32_t ascending = (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
  const std::uint32_t order = value == value ? ascending : 0;
  return static_cast<Rank>(order) << 32 | ~static_cast<std::uint32_t>(index);
}

__device__ __forceinline__ int index_of(Rank rank) { return static_cast<int>(~static_cast<std::uint32_t>(rank)); }

__device__ __forceinline__ Rank higher(Rank a, Rank b) { return a > b ? a : b; }

template <int kWave>
__device__ __forceinline__ Rank wave_highest(Rank rank) {
  DCULAB_UNROLL
  for (int mask = 1; mask < kWave; mask *= 2) {
    const auto low = shuffle_xor<kWave>(static_cast<std::uint32_t>(rank), mask);
    const auto high = shuffle_xor<kWave>(static_cast<std::uint32_t>(rank >> 32), mask);
    rank = higher(rank, static_cast<Rank>(high) << 32 | low);
  }
  return rank;
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
