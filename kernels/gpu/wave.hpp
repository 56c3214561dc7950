// Sums, maxima and prefix sums over the lanes of a wave, or of a workgroup.
#pragma once

#include <cstdint>

#include "kernels/gpu/runtime.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// Over each group of kWidth neighbouring lanes, kStep apart: all lanes of the group get the sum.
template <int kWave, int kWidth = kWave, int kStep = 1>
__device__ __forceinline__ float wave_sum(float value) {
  DCULAB_UNROLL
  for (int mask = kStep; mask < kWidth; mask *= 2) value += shuffle_xor<kWave>(value, mask);
  return value;
}

template <int kWave, int kWidth = kWave, int kStep = 1>
__device__ __forceinline__ float wave_max(float value) {
  DCULAB_UNROLL
  for (int mask = kStep; mask < kWidth; mask *= 2) value = larger(value, shuffle_xor<kWave>(value, mask));
  return value;
}

// The sums of kCount values each over groups of kLanes neighbouring lanes, spread over the lanes of the group: lane j
// gets sums j, j + n, j + 2 n, ... as values[0], values[1], ..., with n = min(kCount, kLanes) (lanes j >= n those of
// j % n). Takes about kCount shuffles where a sum per value would take kCount log2(kLanes). Powers of two.
template <int kWave, int kCount, int kLanes, int kMask = 1, typename T>
__device__ __forceinline__ void wave_transpose_sum(T* values) {
  if constexpr (kMask < kLanes && kCount > 1) {
    const bool upper = (lane_index<kWave>() & kMask) != 0;
    DCULAB_UNROLL
    for (int i = 0; i < kCount / 2; ++i) {
      const T even = values[2 * i], odd = values[2 * i + 1];
      values[i] = choose(upper, odd, even) + shuffle_xor<kWave>(choose(upper, even, odd), kMask);
    }
    wave_transpose_sum<kWave, kCount / 2, kLanes, kMask * 2>(values);
  } else if constexpr (kMask < kLanes) {
    values[0] += shuffle_xor<kWave>(values[0], kMask);
    wave_transpose_sum<kWave, 1, kLanes, kMask * 2>(values);
  }
}

// One value per wave of the largest workgroup.
struct WavePartials {
  float values[1024 / 32];
};

// Sum over all lanes of a workgroup of kThreads. Two barriers: `partials` may be used again right after.
template <int kWave, int kThreads>
__device__ __forceinline__ float workgroup_sum(float value, WavePartials& partials) {
  constexpr int kWaves = kThreads / kWave;
  value = wave_sum<kWave>(value);
  if constexpr (kWaves > 1) {
    if (lane_index<kWave>() == 0) partials.values[wave_index<kWave>()] = value;
    barrier();
    value = 0;
    for (int i = 0; i < kWaves; ++i) value += partials.values[i];
    barrier();
  }
  return value;
}

template <int kWave, int kThreads>
__device__ __forceinline__ float workgroup_max(float value, WavePartials& partials) {
  constexpr int kWaves = kThreads / kWave;
  value = wave_max<kWave>(value);
  if constexpr (kWaves > 1) {
    if (lane_index<kWave>() == 0) partials.values[wave_index<kWave>()] = value;
    barrier();
    value = partials.values[0];
    for (int i = 1; i < kWaves; ++i) value = larger(value, partials.values[i]);
    barrier();
  }
  return value;
}

// Of an integer of each lane of a workgroup.
struct LaneSums {
  int before = 0;  // of the lanes before this one
  int total = 0;
};

// wave_sums: shared, [kThreads / kWave]. Two barriers: it may be used again right after.
template <int kWave, int kThreads>
__device__ __forceinline__ LaneSums workgroup_prefix_sum(int value, std::int32_t* wave_sums) {
  const int lane = lane_index<kWave>();
  int sum = value;
  DCULAB_UNROLL
  for (int step = 1; step < kWave; step *= 2)
    sum += choose(lane >= step, shuffle<kWave, kWave>(sum, lane + kWave - step), 0);
  if (lane == kWave - 1) wave_sums[wave_index<kWave>()] = sum;
  barrier();
  LaneSums sums{sum - value, 0};
  for (int wave = 0; wave < kThreads / kWave; ++wave) {
    if (wave < wave_index<kWave>()) sums.before += wave_sums[wave];
    sums.total += wave_sums[wave];
  }
  barrier();
  return sums;
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
