// y = x W^T with W in GPTQ int4, dequantised in registers: a GEMV for up to 8 rows of x and a GEMM for more.
//
// No atomics: the sum over in-features is divided among the lanes of a workgroup, and where tiles of y are few among
// workgroups too, and added in an order that depends on shapes alone.
#pragma once

#include "kernels/gpu/matmul/bias.hpp"
#include "kernels/gpu/matmul/gptq_weights.hip.hpp"
#include "kernels/gpu/wave.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// Part p of the sum has in-features p * k_per_part and up. In-feature k is of group k >> group_shift.
struct GptqDivision {
  int k_per_part = 0;
  int group_shift = 0;
};

// The workspace, where there is one, takes the parts of the sum, [parts, m, n]; otherwise y takes the only one.
__device__ __forceinline__ void store_sum(const GptqMatmul& args, int part, int row, int column, float sum) {
  const int n = args.weight.out_features;
  if (row >= args.m || column >= n) return;
  if (args.workspace != nullptr)
    store(args.workspace + (static_cast<std::int64_t>(part) * args.m + row) * n + column, sum);
  else
    store_number(args.y.data, args.y.dtype, static_cast<std::int64_t>(row) * args.y_stride + column,
                 sum + bias_of(args.bias, column));
}

__device__ __forceinline__ int end_of_part(const GptqMatmul& args, const GptqDivision& division, int part) {
  const std::int64_t end = (part + std::int64_t{1}) * division.k_per_part;
  return end < args.weight.in_features ? static_cast<int>(end) : args.weight.in_features;
}

// ---- GEMV ----

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

template <typename T, int kRows>
__device__ __forceinline__ void stage_x(const GptqMatmul& args, int k_begin, int k_end,
                                        GptqGemvShared<T, kRows>& shared) {
  constexpr int kEights = GptqGemvShared<T, kRows>::kSlab / 8;
  DCULAB_UNROLL
  for (int i = 0; i < kRows * kEights / kGptqThreads; ++i) {
    const int place = i * kGptqThreads + thread_index();
    const int row = place / kEights, k = k_begin + place % kEights * 8;
    Eight<T> eight{};
    if (row < args.m && k < k_end) {
      const std::int64_t offset = static_cast<std::int64_t>(row) * args.weight.in_features;
      eight = load_eight(static_cast<const T*>(args.x.data) + offset, k, args.x_perm);
    }
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
__device__ __forceinline__ void reduce_chunks(const GptqMatmul& args, GptqGemvShared<T, kRows>& shared,
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
  store_sum(args, workgroup_y(), row, workgroup_x() * kGptqGemvColumns + column, sum);
}

// Workgroups: (ceil(n / kGptqGemvColumns), parts). Eight neighbouring lanes share a chunk: 128 bytes of each of its
// rows. The next chunk is on its way while one is multiplied.
template <int kWave, int kRows, typename T>
__global__ void __launch_bounds__(kGptqThreads, 2) gptq_gemv_kernel(GptqMatmul args, GptqDivision division) {
  using Shared = GptqGemvShared<T, kRows>;
  DCULAB_SHARED(Shared, shared);
  const GptqWeightView& weight = args.weight;
  const int column = workgroup_x() * kGptqGemvColumns + thread_index() % kGptqLanesPerChunk * kGptqLaneColumns;
  const int k_begin = workgroup_y() * division.k_per_part;
  const int k_end = end_of_part(args, division, workgroup_y());
  const int own = thread_index() / kGptqLanesPerChunk * kGptqChunk;  // within a round
  float sums[kRows][kGptqLaneColumns] = {};
  GptqChunk chunk = load_chunk(weight, k_begin + own, k_end, column, division.group_shift);
  for (int slab = k_begin; slab < k_end; slab += Shared::kSlab) {
    if (slab != k_begin) barrier();
    stage_x(args, slab, k_end, shared);
    barrier();
    for (int round = 0; round < Shared::kSlab && slab + round < k_end; round += kGptqRound) {
      const int after = slab + round + own + kGptqRound;
      const GptqChunk next = load_chunk(weight, after, k_end, column, division.group_shift);
      multiply_chunk(chunk, column, weight.zero_offset, shared, (round + own) / 8, sums);
      chunk = next;
    }
  }
  reduce_chunks<kWave>(args, shared, sums);
}

// ---- GEMM ----

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
__device__ __forceinline__ GptqGemmFetch<T> fetch_tiles(const GptqMatmul& args, const GptqDivision& division, int k,
                                                        int k_end) {
  GptqGemmFetch<T> fetch;
  const int column = workgroup_x() * kGptqGemmColumns + thread_index() % kGptqQuads * kGptqLaneColumns;
  const int w_k = k + thread_index() / kGptqQuads * 8;
  if (thread_index() < kGptqWeightLanes && k < k_end && column < args.weight.out_features) {
    fetch.words = load_words(args.weight, w_k, column);
    fetch.group = load_group(args.weight, w_k, column, division.group_shift);
  }
  const int row = workgroup_y() * kTileRows + x_lane<kTileRows>() / kGptqEights;
  const int x_k = k + x_lane<kTileRows>() % kGptqEights * 8;
  if (x_lane<kTileRows>() >= 0 && k < k_end && row < args.m) {
    const std::int64_t offset = static_cast<std::int64_t>(row) * args.weight.in_features;
    fetch.x = load_eight(static_cast<const T*>(args.x.data) + offset, x_k, args.x_perm);
  }
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

// Workgroups: (ceil(n / kGptqGemmColumns), ceil(m / kTileRows), parts).
template <int kWave, int kTileRows, typename T>
__global__ void __launch_bounds__(kGptqThreads, 2) gptq_gemm_kernel(GptqMatmul args, GptqDivision division) {
  using Shared = GptqGemmShared<T, kTileRows>;
  DCULAB_SHARED(Shared, shared);
  constexpr int kLaneRows = kTileRows * kGptqLanesAcross / kGptqThreads;
  const int k_begin = workgroup_z() * division.k_per_part;
  const int k_end = end_of_part(args, division, workgroup_z());
  float sums[kLaneRows][2 * kGptqLaneColumns] = {};
  GptqGemmFetch<T> fetch = fetch_tiles<T, kTileRows>(args, division, k_begin, k_end);
  for (int k = k_begin; k < k_end; k += kGptqGemmStep) {
    if (k != k_begin) barrier();
    stage_tiles(fetch, args.weight.zero_offset, shared);
    barrier();
    fetch = fetch_tiles<T, kTileRows>(args, division, k + kGptqGemmStep, k_end);
    multiply_tiles(shared, sums);
  }
  const int first_row = workgroup_y() * kTileRows + thread_index() / kGptqLanesAcross * kLaneRows;
  DCULAB_UNROLL
  for (int row = 0; row < kLaneRows; ++row) {
    DCULAB_UNROLL
    for (int i = 0; i < 2 * kGptqLaneColumns; ++i)
      store_sum(args, workgroup_z(), first_row + row, workgroup_x() * kGptqGemmColumns + lane_column(i), sums[row][i]);
  }
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
