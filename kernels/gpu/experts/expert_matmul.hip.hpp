// Products of the experts with weights that are plain values, or FP8: the inner loops of matmul.hip.hpp, a tile of one
// expert's rows in each workgroup.
#pragma once

#include "kernels/gpu/experts/expert_tile.hpp"
#include "kernels/gpu/matmul/bias.hpp"
#include "kernels/gpu/matmul/gemm_tile.hpp"
#include "kernels/gpu/matmul/gemv_rows.hpp"
#include "kernels/gpu/matmul/matrix_tile.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// Of the expert.
template <typename W>
__device__ __forceinline__ const W* weights_of(const ExpertMatmul& args, const TileOfRows& tile) {
  return static_cast<const W*>(args.w.data) + static_cast<std::int64_t>(tile.expert) * args.n * args.k;
}

__device__ __forceinline__ const float* bias_of(const float* bias, int n, const TileOfRows& tile) {
  return bias == nullptr ? nullptr : bias + static_cast<std::int64_t>(tile.expert) * n;
}

// Workgroups: (tiles, n / (the columns of their waves), rounded up).
template <int kWave, int kRows, typename X, typename W>
__global__ void __launch_bounds__(kGemvThreads, (kGemvWaves<kRows, X, W>)) expert_gemv_kernel(ExpertMatmul args) {
  using Rows = GemvRows<kWave, kRows, X, W>;
  DCULAB_SHARED(typename Rows::Slab, slab);
  const TileOfRows tile = find_tile(args.rows, workgroup_x(), kRows);
  if (tile.count == 0) return;
  const ChosenRows<X> x = x_rows<X>(args.x, args.rows, tile, args.k);
  const int first = (workgroup_y() * (kGemvThreads / kWave) + wave_index<kWave>()) * kGemvColumns;
  const float sum = Rows().multiply(x, weights_of<W>(args, tile), tile.count, args.n, args.k, first, slab,
                                    scales_of_matrix(args.scales, tile.expert, args.n));
  const int row = lane_index<kWave>() / kGemvColumns;
  const int column = first + lane_index<kWave>() % kGemvColumns;
  if (row < kRows && row < tile.count && column < args.n)
    store_number(args.y.data, args.y.dtype, static_cast<std::int64_t>(tile.first_row + row) * args.n + column,
                 sum + bias_of(bias_of(args.bias, args.n, tile), column));
}

// Rows of a tile that lie anywhere in x; where each of a thread's pieces begins is found once. See TileRows.
template <typename X, typename Part>
struct ChosenTileRows {
  using Value = X;
  const X* data;
  int rows, k_end;
  std::uint32_t offsets[Part::kOwn];

  __device__ __forceinline__ ChosenTileRows(const ChosenRows<X>& x, int k) : data(x.data), rows(x.count), k_end(k) {
    DCULAB_UNROLL
    for (int i = 0; i < Part::kOwn; ++i)
      offsets[i] = static_cast<std::uint32_t>(x.number(Part::row_of(i))) * static_cast<std::uint32_t>(k) *
                   std::uint32_t{sizeof(X)};
  }
  __device__ __forceinline__ const X* corner(int k) const { return data + k; }
  __device__ __forceinline__ bool has(int row) const { return row < rows; }
  __device__ __forceinline__ std::uint32_t offset(int i, int /*row*/, int ahead) const {
    return offsets[i] + static_cast<std::uint32_t>(ahead) * std::uint32_t{sizeof(X)};
  }
};

// Workgroups: (tiles, column tiles): those that need the same weights start one after another.
template <int kRows, typename X, typename W>
__global__ void __launch_bounds__(kGemmThreads, 2) expert_gemm_kernel(ExpertMatmul args) {
  const TileOfRows tile = find_tile(args.rows, workgroup_x(), kRows);
  if (tile.count == 0) return;
  const int first_column = workgroup_y() * kGemmColumns;
  with_tile_sums<kRows, X, W>(
      [&]<typename Part>(Fetched<Part>) {
        return ChosenTileRows<X, Part>(x_rows<X>(args.x, args.rows, tile, args.k), args.k);
      },
      TileRows<W>{weights_of<W>(args, tile), first_column, args.n, args.k, args.k,
                  scales_of_matrix(args.scales, tile.expert, args.n)},
      0,
      [&](auto& sums) {
        add_bias(sums, bias_of(args.bias, args.n, tile), args.n, first_column);
        store_tile(sums, args.y, 0, tile.first_row + tile.count, args.n, args.n, tile.first_row, first_column);
      });
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
