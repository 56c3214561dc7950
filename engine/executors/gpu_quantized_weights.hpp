// Quantized matrices from the CPU kernels' packed form, which checkpoints are read into, to the GPU kernels' forms.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/ops.hpp"
#include "kernels/quantized_matrix.hpp"

namespace dculab::engine {

// GPTQ tensors whose rows are in the order of their groups.
struct GptqArrays {
  std::vector<std::uint32_t> qweight;  // [columns / 8, rows]
  std::vector<std::uint32_t> qzeros;   // [groups, rows / 8]: zero points as they are
  std::vector<std::uint16_t> scales;   // [groups, rows], F16
  std::vector<std::int32_t> x_perm;    // [columns], or empty: see kernels::gpu::GptqMatmul
};

// Puts a matrix of `columns` in-features behind those that `to` has. An order of rows that only some need is given to
// all.
void append(GptqArrays& to, const GptqArrays& matrix, int columns);

struct Int8Arrays {
  std::vector<std::int8_t> values;  // [rows, columns]
  std::vector<float> scales;        // [rows]
};

// The scales of FP8 matrices one below the other, each of `parts` views: see kernels::gpu::WeightScales. Blocks of rows
// are as fine as the views are short.
struct Fp8ScaleArray {
  std::vector<float> values;  // [matrices, row blocks, column_blocks]
  int row_shift = 31, column_shift = 31, column_blocks = 1;
};
[[nodiscard]] Fp8ScaleArray to_fp8_scales(std::span<const kernels::WeightView> views, std::size_t parts, int columns);

// Packed matrices of `columns` in-features that share their input, one below the other.
[[nodiscard]] kernels::QuantizedMatrix unpack_rows(std::span<const kernels::WeightView> views, int columns);

// Throw InputError for what the GPU kernels do not take: int4 but groups of 32, 64, 128 or all in-features; int8 but
// one scale a row and the zero point 128; sizes that do not fill the kernels' words.
[[nodiscard]] GptqArrays to_gptq_arrays(const kernels::QuantizedMatrix& matrix);
[[nodiscard]] Int8Arrays to_int8_arrays(const kernels::QuantizedMatrix& matrix);

}  // namespace dculab::engine
