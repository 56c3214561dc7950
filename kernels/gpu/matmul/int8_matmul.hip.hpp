// W8A8: rows of x quantised to int8, products with int8 weights, summed exactly in int32.
#pragma once

#include "kernels/gpu/args.hpp"
#include "kernels/gpu/matmul/bias.hpp"
#include "kernels/gpu/matmul/gemm_tile.hpp"
#include "kernels/gpu/matmul/gemv_rows.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

inline constexpr int kQuantizeThreads = 256;

// The products of scales first: a sum times a scale alone could leave the range of f32.
__device__ __forceinline__ float scaled(std::int32_t sum, float x_scale, float w_scale) {
  return static_cast<float>(sum) * (x_scale * w_scale);
}

// As gemv_kernel.
template <int kWave, int kRows>
__global__ void __launch_bounds__(kGemvThreads) int8_gemv_kernel(Int8Matmul args) {
  using Rows = GemvRows<kWave, kRows, std::int8_t, std::int8_t>;
  DCULAB_SHARED(typename Rows::Slab, slab);
  const int first = (workgroup_x() * (kGemvThreads / kWave) + wave_index<kWave>()) * kGemvColumns;
  const StridedRows<std::int8_t> x{args.x, args.k};
  const std::int32_t sum = Rows().multiply(x, args.w, args.m, args.n, args.k, first, slab);
  const int row = lane_index<kWave>() / kGemvColumns;
  const int column = first + lane_index<kWave>() % kGemvColumns;
  if (row < kRows && row < args.m && column < args.n)
    store_number(args.y.data, args.y.dtype, static_cast<std::int64_t>(row) * args.y_stride + column,
                 scaled(sum, load(args.x_scale + row), load(args.w_scale + column)) + bias_of(args.bias, column));
}

// As gemm_kernel, with all of k in one part.
template <int kRows>
__global__ void __launch_bounds__(kGemmThreads, 2) int8_gemm_kernel(Int8Matmul args) {
  using Slabs = GemmSlabs<Int8Quad, kRows>;
  using Tile = TileSums<float, kRows>;
  DCULAB_SHARED(Slabs, slabs);
  const int first_row = workgroup_x() * kRows, first_column = workgroup_y() * kGemmColumns;
  const auto sums =
      multiply_slabs<Int8Quad, kRows>(TileRows<std::int8_t>{args.x, first_row, args.m, args.k, args.k},
                                      TileRows<std::int8_t>{args.w, first_column, args.n, args.k, args.k}, 0, slabs);
  float w_scale[Tile::Columns::kOwn];
  DCULAB_UNROLL
  for (int j = 0; j < Tile::Columns::kOwn; ++j) {
    const int column = first_column + Tile::column(j);
    w_scale[j] = column < args.n ? load(args.w_scale + column) : 0.0F;
  }
  Tile tile;
  DCULAB_UNROLL
  for (int i = 0; i < Tile::Rows::kOwn; ++i) {
    const int row = first_row + Tile::row(i);
    const float x_scale = row < args.m ? load(args.x_scale + row) : 0.0F;
    DCULAB_UNROLL
    for (int j = 0; j < Tile::Columns::kOwn; ++j) tile.sums[i][j] = scaled(sums.sums[i][j], x_scale, w_scale[j]);
  }
  add_bias(tile, args.bias, args.n, first_column);
  store_tile(tile, args.y, 0, args.m, args.n, args.y_stride, first_row, first_column);
}

// Divides, and rounds ties to even. Only a scale that is subnormal, hence coarse, can lead past 127.
__device__ __forceinline__ std::int8_t quantized(float value, float scale) {
  if (scale == 0) return 0;
  const float rounded = round_to_even(value / scale);
  return static_cast<std::int8_t>(rounded > 127.0F ? 127.0F : rounded < -127.0F ? -127.0F : rounded);
}

// One workgroup per row.
template <int kWave>
__global__ void __launch_bounds__(kQuantizeThreads) quantize_rows_kernel(QuantizeRows args) {
  DCULAB_SHARED(WavePartials, partials);
  const std::int64_t row = static_cast<std::int64_t>(workgroup_x()) * args.k;
  const int wide = wide_part(args.k, args.k, args.x.data, args.out);
  float largest = 0;
  for_each_number<kQuantizeThreads>(wide, args.k, [&](auto count, int i) {
    const auto x = load_numbers<decltype(count)::value>(args.x.data, args.x.dtype, row + i);
    DCULAB_UNROLL
    for (int j = 0; j < decltype(count)::value; ++j) largest = larger(largest, larger(x[j], -x[j]));
  });
  const float scale = workgroup_max<kWave, kQuantizeThreads>(largest, partials) / 127.0F;
  if (thread_index() == 0) store(args.scale + workgroup_x(), scale);
  for_each_number<kQuantizeThreads>(wide, args.k, [&](auto count, int i) {
    constexpr int kCount = decltype(count)::value;
    const auto x = load_numbers<kCount>(args.x.data, args.x.dtype, row + i);
    Pack<std::int8_t, kCount> pack;
    DCULAB_UNROLL
    for (int j = 0; j < kCount; ++j) pack[j] = quantized(x[j], scale);
    store(reinterpret_cast<Pack<std::int8_t, kCount>*>(args.out + row + i), pack);
  });
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
