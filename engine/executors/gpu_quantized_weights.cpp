#include "engine/executors/gpu_quantized_weights.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "engine/checkpoint/quantized_tensors.hpp"
#include "kernels/cpu/packed_weights.hpp"
#include "kernels/gpu/matmul/gptq_layout.hpp"
#include "lower/dculab_gpu/gptq_plan.hpp"

namespace dculab::engine {
namespace {

using kernels::QuantizedMatrix;

constexpr int kInt8Zero = 128;
constexpr int kInt8Multiple = 16;  // of in-features: see kernels::gpu::Int8Matmul

template <typename T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

void require_multiple(const QuantizedMatrix& matrix, int multiple) {
  if (matrix.columns % multiple != 0)
    throw InputError("a matrix of " + std::to_string(matrix.columns) + " in-features in int" +
                     std::to_string(matrix.bits) + " is not supported on the GPU; they must be a multiple of " +
                     std::to_string(multiple));
}

void require_int4_kernel(const QuantizedMatrix& matrix) {
  const int group = matrix.group_size;
  if (group != 32 && group != 64 && group != 128 && group != matrix.columns)
    throw InputError("int4 weights in groups of " + std::to_string(group) +
                     " are not supported on the GPU; use groups of 32, 64 or 128, or one for each row (-1)");
  require_multiple(matrix, lower::dculab_gpu::kGptqChunk);
}

void require_int8_kernel(const QuantizedMatrix& matrix) {
  if (matrix.group_size != matrix.columns)
    throw InputError("int8 weights in groups of " + std::to_string(matrix.group_size) +
                     " are not supported on the GPU; use one scale for each row (--group-size -1)");
  if (std::ranges::any_of(matrix.zeros, [](std::uint8_t zero) { return zero != kInt8Zero; }))
    throw InputError(
        "int8 weights with zero points are not supported on the GPU; use a symmetric grid "
        "(--sym, or --method absmax or smoothquant)");
  require_multiple(matrix, kInt8Multiple);
}

}  // namespace

Fp8ScaleArray to_fp8_scales(std::span<const kernels::WeightView> views, std::size_t parts, int columns) {
  Fp8ScaleArray array;
  for (const kernels::WeightView& view : views) {
    array.row_shift = std::min(array.row_shift, view.scales.row_shift);
    array.column_shift = std::min(array.column_shift, view.scales.column_shift);
  }
  unsigned first = 0;  // row of a part
  for (const kernels::WeightView& view : views.first(parts)) {
    if (first > 0) array.row_shift = std::min(array.row_shift, std::countr_zero(first));
    first += static_cast<unsigned>(view.rows);
  }
  array.column_blocks = ((columns - 1) >> array.column_shift) + 1;
  for (const kernels::WeightView& view : views)
    for (int block = 0; block <= (view.rows - 1) >> array.row_shift; ++block) {
      const float* const row = view.scales.of_row(block << array.row_shift);
      for (int column = 0; column < array.column_blocks; ++column)
        array.values.push_back(row[column << array.column_shift >> view.scales.column_shift] /
                               kernels::Fp8Scales::kFactor);
    }
  return array;
}

QuantizedMatrix unpack_rows(std::span<const kernels::WeightView> views, int columns) {
  QuantizedMatrix all = kernels::cpu::unpack_weights(views.front(), columns);
  for (const kernels::WeightView& view : views.subspan(1)) {
    const QuantizedMatrix next = kernels::cpu::unpack_weights(view, columns);
    all.rows += next.rows;
    append(all.q, next.q);
    append(all.scales, next.scales);
    append(all.zeros, next.zeros);
  }
  return all;
}

GptqArrays to_gptq_arrays(const QuantizedMatrix& matrix) {
  require_int4_kernel(matrix);
  GptqTensors tensors = to_gptq_tensors(matrix, QuantizedFormat::gptq_v2);
  kernels::gpu::GptqLayout sorted = kernels::gpu::sort_by_group({.qweight = tensors.qweight.data(),
                                                                 .g_idx = tensors.g_idx.data(),
                                                                 .in_features = matrix.columns,
                                                                 .out_features = matrix.rows,
                                                                 .group_size = matrix.group_size});
  return {sorted.qweight.empty() ? std::move(tensors.qweight) : std::move(sorted.qweight), std::move(tensors.qzeros),
          std::move(tensors.scales), std::move(sorted.x_perm)};
}

void append(GptqArrays& to, const GptqArrays& matrix, int columns) {
  const std::size_t k = static_cast<std::size_t>(columns), before = to.qweight.size() / matrix.qweight.size();
  const auto add_order = [&to, k](const std::vector<std::int32_t>& order) {
    const std::size_t first = to.x_perm.size();
    to.x_perm.resize(first + k);
    const auto begin = to.x_perm.begin() + static_cast<std::ptrdiff_t>(first);
    if (order.empty())
      std::iota(begin, to.x_perm.end(), 0);
    else
      std::ranges::copy(order, begin);
  };
  const bool is_ordered = !to.x_perm.empty() || !matrix.x_perm.empty();
  for (std::size_t each = to.x_perm.size() / k; is_ordered && each < before; ++each) add_order({});
  if (is_ordered) add_order(matrix.x_perm);
  append(to.qweight, matrix.qweight);
  append(to.qzeros, matrix.qzeros);
  append(to.scales, matrix.scales);
}

Int8Arrays to_int8_arrays(const QuantizedMatrix& matrix) {
  require_int8_kernel(matrix);
  Int8Arrays arrays{.values = std::vector<std::int8_t>(matrix.q.size()), .scales = matrix.scales};
  std::ranges::transform(matrix.q, arrays.values.begin(),
                         [](std::uint8_t q) { return static_cast<std::int8_t>(q - kInt8Zero); });
  return arrays;
}

}  // namespace dculab::engine
