// Products of each head with its own part of kv_b_proj, which take the place of expanding latents. A few tokens of one
// head in a workgroup, which reads the part as it is stored.
#pragma once

#include "kernels/gpu/latent_args.hpp"
#include "kernels/gpu/layers/rows.hpp"
#include "kernels/gpu/matmul/gemv_rows.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

inline constexpr int kAbsorbColumnLanes = kMostLatentRank / kAbsorbLaneColumns;  // 64
inline constexpr int kAbsorbParts = kAbsorbThreads / kAbsorbColumnLanes;         // of the sum over rows of w

template <int kRows>
struct AbsorbShared {
  float x[kAbsorbThreads][kRows];  // of the rows of w that are under way, token by token
  float sums[kAbsorbParts][kMostLatentRank];
};

// Where a workgroup's tokens begin, and how many it has.
struct AbsorbPlace {
  int head, first, count;
};

template <int kRows>
__device__ __forceinline__ AbsorbPlace find_absorb_place(const Absorb& args, int tile) {
  const int first = tile * kRows;
  return {workgroup_x(), first, smaller(kRows, args.num_tokens - first)};
}

// The rows of a head's K are multiplied and added up, w^T x: a lane has eight columns of every fourth row.
template <int kRows, typename W>
__device__ __forceinline__ void add_key_rows(const Absorb& args, const AbsorbPlace& place, AbsorbShared<kRows>& shared,
                                             float (&sums)[kRows][kAbsorbLaneColumns]) {
  const LatentSizes& sizes = args.sizes;
  const int column = thread_index() % kAbsorbColumnLanes * kAbsorbLaneColumns;
  const int part = thread_index() / kAbsorbColumnLanes;
  const std::int64_t first = static_cast<std::int64_t>(place.head) * sizes.expanded_head_dim();
  const std::int64_t x_first = static_cast<std::int64_t>(place.head) * sizes.qk_head_dim();
  for (int begin = 0; begin < sizes.qk_nope_head_dim; begin += kAbsorbThreads) {
    const int own = begin + thread_index(), end = smaller(begin + kAbsorbThreads, sizes.qk_nope_head_dim);
    barrier();
    DCULAB_UNROLL
    for (int t = 0; t < kRows; ++t) {
      float x = 0;
      if (own < end && t < place.count)
        x = load_number(args.x.data, args.x.dtype, (place.first + t) * args.x_stride + x_first + own);
      shared.x[thread_index()][t] = x;
    }
    barrier();
    if (column >= sizes.kv_lora_rank) continue;
    for (int row = begin + part; row < end; row += kAbsorbParts) {
      auto w = load_packed<kAbsorbLaneColumns, W>(args.kv_b_proj.data, (first + row) * sizes.kv_lora_rank + column);
      if constexpr (kHasScales<W>) {
        const float factor = scale_of(args.scales, static_cast<int>(first) + row, column);
        DCULAB_UNROLL
        for (int c = 0; c < kAbsorbLaneColumns; ++c) w[c] *= factor;
      }
      DCULAB_UNROLL
      for (int t = 0; t < kRows; ++t) {
        DCULAB_UNROLL
        for (int c = 0; c < kAbsorbLaneColumns; ++c)
          sums[t][c] = fused_multiply_add(shared.x[row - begin][t], w[c], sums[t][c]);
      }
    }
  }
}

// Adds the parts of each token's sums, in order, and stores them; then the rotated part of the query.
template <int kRows>
__device__ __forceinline__ void store_latent_queries(const Absorb& args, const AbsorbPlace& place,
                                                     AbsorbShared<kRows>& shared,
                                                     const float (&sums)[kRows][kAbsorbLaneColumns]) {
  const LatentSizes& sizes = args.sizes;
  const int column = thread_index() % kAbsorbColumnLanes * kAbsorbLaneColumns;
  DCULAB_UNROLL
  for (int t = 0; t < kRows; ++t) {
    DCULAB_UNROLL
    for (int c = 0; c < kAbsorbLaneColumns; ++c)
      shared.sums[thread_index() / kAbsorbColumnLanes][column + c] = sums[t][c];
    barrier();
    const std::int64_t token = place.first + t;
    const std::int64_t to = (token * sizes.num_heads + place.head) * sizes.latent_width();
    for (int i = thread_index(); t < place.count && i < sizes.kv_lora_rank; i += kAbsorbThreads) {
      float sum = 0;
      DCULAB_UNROLL
      for (int part = 0; part < kAbsorbParts; ++part) sum += shared.sums[part][i];
      store_number(args.y.data, args.y.dtype, to + i, sum);
    }
    const std::int64_t rotated = token * args.x_stride + place.head * sizes.qk_head_dim() + sizes.qk_nope_head_dim;
    for (int i = thread_index(); t < place.count && i < sizes.qk_rope_head_dim; i += kAbsorbThreads)
      store_number(args.y.data, args.y.dtype, to + sizes.kv_lora_rank + i,
                   load_number(args.x.data, args.x.dtype, rotated + i));
    barrier();
  }
}

// Grid: heads, tiles of kRows tokens.
template <int kRows, typename W>
__global__ void __launch_bounds__(kAbsorbThreads, 2) absorb_k_kernel(Absorb args) {
  DCULAB_SHARED(AbsorbShared<kRows>, shared);
  const AbsorbPlace place = find_absorb_place<kRows>(args, workgroup_y());
  float sums[kRows][kAbsorbLaneColumns] = {};
  add_key_rows<kRows, W>(args, place, shared, sums);
  store_latent_queries<kRows>(args, place, shared, sums);
}

// Grid: heads, tiles of kRows tokens, v_head_dim / (the columns of its waves), rounded up.
template <int kWave, int kRows, typename X, typename W>
__global__ void __launch_bounds__(kGemvThreads, (kGemvWaves<kRows, X, W>)) absorb_v_kernel(Absorb args) {
  using Rows = GemvRows<kWave, kRows, X, W>;
  DCULAB_SHARED(typename Rows::Slab, slab);
  const LatentSizes& sizes = args.sizes;
  const AbsorbPlace place = find_absorb_place<kRows>(args, workgroup_y());
  const int first = (workgroup_z() * (kGemvThreads / kWave) + wave_index<kWave>()) * kGemvColumns;
  const std::int64_t w_row = place.head * sizes.expanded_head_dim() + sizes.qk_nope_head_dim;
  const StridedRows<X> x{static_cast<const X*>(args.x.data) + place.first * args.x_stride +
                             static_cast<std::int64_t>(place.head) * sizes.kv_lora_rank,
                         static_cast<int>(args.x_stride)};
  const float sum = Rows().multiply(x, static_cast<const W*>(args.kv_b_proj.data) + w_row * sizes.kv_lora_rank,
                                    place.count, sizes.v_head_dim, sizes.kv_lora_rank, first, slab,
                                    scales_from(args.scales, static_cast<int>(w_row)));
  const int row = lane_index<kWave>() / kGemvColumns, column = first + lane_index<kWave>() % kGemvColumns;
  if (row < kRows && row < place.count && column < sizes.v_head_dim)
    store_number(
        args.y.data, args.y.dtype,
        (static_cast<std::int64_t>(place.first + row) * sizes.num_heads + place.head) * sizes.v_head_dim + column, sum);
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
