// Products with weights that are plain values, f16, bf16 or f32, or FP8 with scales.
#pragma once

#include "kernels/gpu/args.hpp"
#include "kernels/gpu/matmul/bias.hpp"
#include "kernels/gpu/matmul/gemm_tile.hpp"
#include "kernels/gpu/matmul/gemv_rows.hpp"
#include "kernels/gpu/matmul/matrix_tile.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// Up to kRows rows of x. Workgroups: n / (the columns of its waves), rounded up.
template <int kWave, int kRows, typename X, typename W>
__global__ void __launch_bounds__(kGemvThreads) gemv_kernel(Matmul args) {
  using Rows = GemvRows<kWave, kRows, X, W>;
  DCULAB_SHARED(typename Rows::Slab, slab);
  const int first = (workgroup_x() * (kGemvThreads / kWave) + wave_index<kWave>()) * kGemvColumns;
  const StridedRows<X> x{static_cast<const X*>(args.x.data), args.x_stride};
  const float sum =
      Rows().multiply(x, static_cast<const W*>(args.w.data), args.m, args.n, args.k, first, slab, args.scales);
  const int row = lane_index<kWave>() / kGemvColumns;
  const int column = first + lane_index<kWave>() % kGemvColumns;
  if (row < kRows && row < args.m && column < args.n)
    store_number(args.y.data, args.y.dtype, static_cast<std::int64_t>(row) * args.y_stride + column,
                 sum + bias_of(args.bias, column));
}

// Tiles of kRows rows. Workgroups: (row tiles, column tiles, parts of k); those that need the same weights start one
// after another. Part p of k goes to y[p], [parts, m, y_stride].
template <int kRows, typename X, typename W>
__global__ void __launch_bounds__(kGemmThreads, 2) gemm_kernel(Matmul args, int k_per_part) {
  const int first_row = workgroup_x() * kRows, first_column = workgroup_y() * kGemmColumns;
  const int k_begin = workgroup_z() * k_per_part;
  const int k_end = k_begin + k_per_part < args.k ? k_begin + k_per_part : args.k;
  with_tile_sums<kRows, X, W>(
      [&]<typename Part>(Fetched<Part>) {
        return TileRows<X>{static_cast<const X*>(args.x.data), first_row, args.m, args.x_stride, k_end};
      },
      TileRows<W>{static_cast<const W*>(args.w.data), first_column, args.n, args.k, k_end, args.scales}, k_begin,
      [&](auto& tile) {
        add_bias(tile, args.bias, args.n, first_column);
        store_tile(tile, args.y, workgroup_z(), args.m, args.n, args.y_stride, first_row, first_column);
      });
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
