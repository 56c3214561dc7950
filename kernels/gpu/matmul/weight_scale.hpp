// The scales of FP8 weights, as kernels read them.
#pragma once

#include <type_traits>

#include "kernels/gpu/args.hpp"
#include "kernels/gpu/numbers.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

template <typename W>
inline constexpr bool kHasScales = std::is_same_v<W, Fp8E4M3>;

// Of the weight in a row, at place k, and those beside it that share a load.
__device__ __forceinline__ float scale_of(const WeightScales& scales, int row, int k) {
  const std::int64_t block = static_cast<std::int64_t>((scales.first_row + row) >> scales.row_shift);
  return load(scales.values + block * scales.column_blocks + (k >> scales.column_shift));
}

// Those of weights from row `row` on.
__device__ __forceinline__ WeightScales scales_from(WeightScales scales, int row) {
  scales.first_row += row;
  return scales;
}

// Those of matrix `index` of several, of `rows` rows each, whose scales follow one another.
__device__ __forceinline__ WeightScales scales_of_matrix(WeightScales scales, int index, int rows) {
  const std::int64_t row_blocks = ((rows - 1) >> scales.row_shift) + 1;
  scales.values += index * row_blocks * scales.column_blocks;
  return scales;
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
