// y = x W^T with W in GPTQ int4, dequantised in registers: tiles of many rows of x. No atomics, as in
// gptq_gemv.hip.hpp.
#pragma once

#include "kernels/gpu/matmul/gptq_weights.hip.hpp"
#include "kernels/gpu/matmul/x_rows.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// Tiles of both factors, one row per pair of in-features. Rows of x are padded to 4 banks more.
template <typename T, int kTileRows>
struct alignas(16) GptqGemmShared {
  PairOf<T> x[kGptqGemmStep / 2][kTileRows + 4];
  PairOf<T> w[kGptqGemmStep / 2][kGptqGemmColumns];
};

// What a lane brings to the next tiles: eight in-features of four columns, and of one row of x.
template <typename T>
struct GptqGemmFetch {
  Pack<std::uint32_t, 4> words{};
  GptqGroup group;
  Eight<T> x{};
};

inline constexpr int kGptqEights = kGptqGemmStep / 8;
inline constexpr int kGptqQuads = kGptqGemmColumns / kGptqLaneColumns;
inline constexpr int kGptqWeightLanes = kGptqEights * kGptqQuads;  // the first of the workgroup

// The lanes that bring x are the last of the workgroup. < 0: this is none of them.
template <int kTileRows>
__device__ __forceinline__ int x_lane() {
  static_assert(kTileRows * kGptqEights <= kGptqThreads);
  return thread_index() - (kGptqThreads - kTileRows * kGptqEights);
}

template <typename T, int kTileRows>
__device__ __forceinline__ GptqGemmFetch<T> fetch_tiles(const GptqMatmul& args, const GptqDivision& division,
                                                        const T* x_row, int k, int k_end) {
  GptqGemmFetch<T> fetch;
  const int column = workgroup_x() * kGptqGemmColumns + thread_index() % kGptqQuads * kGptqLaneColumns;
  const int w_k = k + thread_index() / kGptqQuads * 8;
  if (thread_index() < kGptqWeightLanes && k < k_end && column < args.weight.out_features) {
    fetch.words = load_words(args.weight, w_k, column);
    fetch.group = load_group(args.weight, w_k, column, division.group_shift);
  }
  const int x_k = k + x_lane<kTileRows>() % kGptqEights * 8;
  if (x_row != nullptr && k < k_end) fetch.x = load_eight(x_row, x_k, args.x_perm);
  return fetch;
}

// scale * (q - zero), rounded to a half.
__device__ __forceinline__ HalfPair scaled(HalfPair pair, Half scale, Half) { return pair * pair_of(scale, scale); }
// The same, exact: 11 bits times 5.
__device__ __forceinline__ FloatPair scaled(HalfPair pair, Half scale, float) {
  const float factor = to_float(scale);
  return {to_float(low_half(pair)) * factor, to_float(high_half(pair)) * factor};
}

template <typename T, int kTileRows>
__device__ __forceinline__ void stage_tiles(const GptqGemmFetch<T>& fetch, int zero_offset,
                                            GptqGemmShared<T, kTileRows>& shared) {
  if (thread_index() < kGptqWeightLanes) {
    const int pair = thread_index() / kGptqQuads * 4, column = thread_index() % kGptqQuads * kGptqLaneColumns;
    DCULAB_UNROLL
    for (int j = 0; j < 4; ++j) {
      DCULAB_UNROLL
      for (int i = 0; i < kGptqLaneColumns; ++i) {
        const HalfPair weight = biased_pair(fetch.words[i], j) + fetch.group.minus_zero(column, i, zero_offset);
        shared.w[pair + j][column + i] = scaled(weight, fetch.group.scale(i), T{});
      }
    }
  }
  if (x_lane<kTileRows>() >= 0) {
    const int row = x_lane<kTileRows>() / kGptqEights, pair = x_lane<kTileRows>() % kGptqEights * 4;
    DCULAB_UNROLL
    for (int j = 0; j < 4; ++j) shared.x[pair + j][row] = fetch.x.pairs[j];
  }
}

// A lane's part of y: kLaneRows neighbouring rows, and four neighbouring columns twice, kGptqGemmColumns / 2 apart.
inline constexpr int kGptqLanesAcross = kGptqGemmColumns / (2 * kGptqLaneColumns);

__device__ __forceinline__ int lane_column(int i) {
  return i / kGptqLaneColumns * (kGptqGemmColumns / 2) + thread_index() % kGptqLanesAcross * kGptqLaneColumns +
         i % kGptqLaneColumns;
}

template <typename T, int kTileRows, int kLaneRows>
__device__ __forceinline__ void multiply_tiles(const GptqGemmShared<T, kTileRows>& shared,
                                               float (&sums)[kLaneRows][2 * kGptqLaneColumns]) {
  const int first_row = thread_index() / kGptqLanesAcross * kLaneRows;
  DCULAB_UNROLL
  for (int pair = 0; pair < kGptqGemmStep / 2; ++pair) {
    PairOf<T> x[kLaneRows], w[2 * kGptqLaneColumns];
    DCULAB_UNROLL
    for (int i = 0; i < kLaneRows; ++i) x[i] = shared.x[pair][first_row + i];
    DCULAB_UNROLL
    for (int i = 0; i < 2 * kGptqLaneColumns; ++i) w[i] = shared.w[pair][lane_column(i)];
    DCULAB_UNROLL
    for (int row = 0; row < kLaneRows; ++row) {
      DCULAB_UNROLL
      for (int i = 0; i < 2 * kGptqLaneColumns; ++i) sums[row][i] = dot2(w[i], x[row], sums[row][i]);
    }
    if (pair % 2 == 1) keep_order();
  }
}

// One part of the sum of a tile of y, from row `tile_row` on.
template <int kTileRows, typename T, typename XRows>
__device__ __forceinline__ void multiply_tile(const GptqMatmul& args, const GptqDivision& division, int part,
                                              int tile_row, const XRows& x, GptqGemmShared<T, kTileRows>& shared) {
  constexpr int kLaneRows = kTileRows * kGptqLanesAcross / kGptqThreads;
  const int k_begin = part * division.k_per_part;
  const int k_end = end_of_part(args, division, part);
  const int own_row = tile_row + x_lane<kTileRows>() / kGptqEights;
  const T* x_row = x_lane<kTileRows>() >= 0 && own_row < args.m ? x.row(own_row) : nullptr;
  float sums[kLaneRows][2 * kGptqLaneColumns] = {};
  GptqGemmFetch<T> fetch = fetch_tiles<T, kTileRows>(args, division, x_row, k_begin, k_end);
  for (int k = k_begin; k < k_end; k += kGptqGemmStep) {
    if (k != k_begin) barrier();
    stage_tiles(fetch, args.weight.zero_offset, shared);
    barrier();
    fetch = fetch_tiles<T, kTileRows>(args, division, x_row, k + kGptqGemmStep, k_end);
    multiply_tiles(shared, sums);
  }
  const int first_row = tile_row + thread_index() / kGptqLanesAcross * kLaneRows;
  DCULAB_UNROLL
  for (int row = 0; row < kLaneRows; ++row) {
    DCULAB_UNROLL
    for (int i = 0; i < 2 * kGptqLaneColumns; ++i)
      store_sum(args, part, first_row + row, workgroup_x() * kGptqGemmColumns + lane_column(i), sums[row][i]);
  }
}

// Workgroups: (ceil(n / kGptqGemmColumns), ceil(m / kTileRows), parts).
template <int kWave, int kTileRows, typename T>
__global__ void __launch_bounds__(kGptqThreads, 2) gptq_gemm_kernel(GptqMatmul args, GptqDivision division) {
  using Shared = GptqGemmShared<T, kTileRows>;
  DCULAB_SHARED(Shared, shared);
  const StridedRows<T> x{static_cast<const T*>(args.x.data), args.weight.in_features};
  multiply_tile<kTileRows, T>(args, division, workgroup_z(), workgroup_y() * kTileRows, x, shared);
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
