// y = x W^T with W in GPTQ int4, dequantised in registers: up to 8 rows of x.
//
// No atomics: the sum over in-features is divided among the lanes of a workgroup, and where tiles of y are few among
// workgroups too, and added in an order that depends on shapes alone.
#pragma once

#include "kernels/gpu/matmul/gptq_weights.hip.hpp"
#include "kernels/gpu/matmul/x_rows.hpp"
#include "kernels/gpu/wave.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// What a lane takes at a time: kGptqChunk in-features of four columns.
struct GptqChunk {
  Pack<std::uint32_t, 4> words[kGptqChunk / 8]{};
  GptqGroup group;
};

// Nothing (scales of 0) from k_end on, and beyond the last column.
__device__ __forceinline__ GptqChunk load_chunk(const GptqWeightView& weight, int k, int k_end, int column,
                                                int group_shift) {
  GptqChunk chunk;
  if (k >= k_end || column >= weight.out_features) return chunk;
  DCULAB_UNROLL
  for (int i = 0; i < kGptqChunk / 8; ++i) chunk.words[i] = load_words(weight, k + 8 * i, column);
  chunk.group = load_group(weight, k, column, group_shift);
  return chunk;
}

template <typename T, int kRows>
struct GptqGemvShared {
  static constexpr int kSlab = kRows < 4 ? 4 / kRows * kGptqRound : kGptqRound;  // in-features of x held at a time
  union {
    Eight<T> x[kRows][kSlab / 8];
    float sums[kGptqThreads / 32][kRows][kGptqGemvColumns];  // of each wave
  };
};

template <typename T, int kRows, typename XRows>
__device__ __forceinline__ void stage_x(const GptqMatmul& args, const XRows& x, int k_begin, int k_end,
                                        GptqGemvShared<T, kRows>& shared) {
  constexpr int kEights = GptqGemvShared<T, kRows>::kSlab / 8;
  DCULAB_UNROLL
  for (int i = 0; i < kRows * kEights / kGptqThreads; ++i) {
    const int place = i * kGptqThreads + thread_index();
    const int row = place / kEights, k = k_begin + place % kEights * 8;
    Eight<T> eight{};
    if (row < args.m && k < k_end) eight = load_eight(x.row(row), k, args.x_perm);
    shared.x[row][place % kEights] = eight;
  }
}

// sums[row][column] += scale * sum over the chunk of (q - zero) * x; x: the first eight of the chunk in shared memory.
template <typename T, int kRows>
__device__ __forceinline__ void multiply_chunk(const GptqChunk& chunk, int column, int zero_offset,
                                               const GptqGemvShared<T, kRows>& shared, int first_eight,
                                               float (&sums)[kRows][kGptqLaneColumns]) {
  HalfPair minus_zero[kGptqLaneColumns];
  DCULAB_UNROLL
  for (int i = 0; i < kGptqLaneColumns; ++i) minus_zero[i] = chunk.group.minus_zero(column, i, zero_offset);
  DCULAB_UNROLL
  for (int eight = 0; eight < kGptqChunk / 8; ++eight) {
    HalfPair weights[kGptqLaneColumns][4];
    DCULAB_UNROLL
    for (int i = 0; i < kGptqLaneColumns; ++i) {
      DCULAB_UNROLL
      for (int j = 0; j < 4; ++j) weights[i][j] = biased_pair(chunk.words[eight][i], j) + minus_zero[i];
    }
    DCULAB_UNROLL
    for (int row = 0; row < kRows; ++row) {
      const Eight<T> x = shared.x[row][first_eight + eight];
      DCULAB_UNROLL
      for (int i = 0; i < kGptqLaneColumns; ++i) {
        float sum = 0;
        DCULAB_UNROLL
        for (int j = 0; j < 4; ++j) sum = dot2(weights[i][j], x.pairs[j], sum);
        sums[row][i] = fused_multiply_add(to_float(chunk.group.scale(i)), sum, sums[row][i]);
      }
    }
    keep_order();
  }
}

// Adds what the chunks of a workgroup have summed up, and stores it.
template <int kWave, typename T, int kRows>
__device__ __forceinline__ void reduce_chunks(const GptqMatmul& args, int part, GptqGemvShared<T, kRows>& shared,
                                              const float (&sums)[kRows][kGptqLaneColumns]) {
  barrier();  // x is used up
  DCULAB_UNROLL
  for (int row = 0; row < kRows; ++row) {
    DCULAB_UNROLL
    for (int i = 0; i < kGptqLaneColumns; ++i) {
      const float sum = wave_sum<kWave, kWave, kGptqLanesPerChunk>(sums[row][i]);
      if (lane_index<kWave>() < kGptqLanesPerChunk)
        shared.sums[wave_index<kWave>()][row][lane_index<kWave>() * kGptqLaneColumns + i] = sum;
    }
  }
  barrier();
  if (thread_index() >= kRows * kGptqGemvColumns) return;
  const int row = thread_index() / kGptqGemvColumns, column = thread_index() % kGptqGemvColumns;
  float sum = 0;
  DCULAB_UNROLL
  for (int wave = 0; wave < kGptqThreads / kWave; ++wave) sum += shared.sums[wave][row][column];
  store_sum(args, part, row, workgroup_x() * kGptqGemvColumns + column, sum);
}

// One part of the sum, and kGptqGemvColumns columns. Eight neighbouring lanes share a chunk: 128 bytes of each of its
// rows. The next chunk is on its way while one is multiplied.
template <int kWave, int kRows, typename T, typename XRows>
__device__ __forceinline__ void multiply_few_rows(const GptqMatmul& args, const GptqDivision& division, int part,
                                                  const XRows& x, GptqGemvShared<T, kRows>& shared) {
  using Shared = GptqGemvShared<T, kRows>;
  const GptqWeightView& weight = args.weight;
  const int column = workgroup_x() * kGptqGemvColumns + thread_index() % kGptqLanesPerChunk * kGptqLaneColumns;
  const int k_begin = part * division.k_per_part;
  const int k_end = end_of_part(args, division, part);
  const int own = thread_index() / kGptqLanesPerChunk * kGptqChunk;  // within a round
  float sums[kRows][kGptqLaneColumns] = {};
  GptqChunk chunk = load_chunk(weight, k_begin + own, k_end, column, division.group_shift);
  for (int slab = k_begin; slab < k_end; slab += Shared::kSlab) {
    if (slab != k_begin) barrier();
    stage_x<T, kRows>(args, x, slab, k_end, shared);
    barrier();
    for (int round = 0; round < Shared::kSlab && slab + round < k_end; round += kGptqRound) {
      const int after = slab + round + own + kGptqRound;
      const GptqChunk next = load_chunk(weight, after, k_end, column, division.group_shift);
      multiply_chunk(chunk, column, weight.zero_offset, shared, (round + own) / 8, sums);
      chunk = next;
    }
  }
  reduce_chunks<kWave>(args, part, shared, sums);
}

// Workgroups: (ceil(n / kGptqGemvColumns), parts).
template <int kWave, int kRows, typename T>
__global__ void __launch_bounds__(kGptqThreads, 2) gptq_gemv_kernel(GptqMatmul args, GptqDivision division) {
  using Shared = GptqGemvShared<T, kRows>;
  DCULAB_SHARED(Shared, shared);
  const StridedRows<T> x{static_cast<const T*>(args.x.data), args.weight.in_features};
  multiply_few_rows<kWave, kRows, T>(args, division, workgroup_y(), x, shared);
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
