#include "lower/dculab_gpu/product_streams.hpp"

#include <algorithm>
#include <cmath>

#include "lower/dculab_gpu/expert_product.hpp"
#include "lower/dculab_gpu/geometry.hpp"
#include "lower/dculab_gpu/gptq_plan.hpp"
#include "lower/dculab_gpu/streams.hpp"

namespace dculab::lower::dculab_gpu {
namespace {

struct Sizes {
  double m = 0, n = 0, k = 0;
};

[[nodiscard]] Sizes sizes_of(const Op& op) {
  return {static_cast<double>(op.m), static_cast<double>(op.n), static_cast<double>(op.k)};
}

[[nodiscard]] bool is_gptq(const KernelId& kernel) {
  return kernel.kernel == Kernel::gptq_gemv || kernel.kernel == Kernel::gptq_gemm ||
         kernel.kernel == Kernel::expert_gptq_gemv || kernel.kernel == Kernel::expert_gptq_gemm;
}

[[nodiscard]] bool is_int8(const KernelId& kernel) {
  return kernel.kernel == Kernel::int8_gemv || kernel.kernel == Kernel::int8_gemm;
}

// What the product reads of x: int8 kernels read rows that were rounded before.
[[nodiscard]] Dtype read_of_x(const Op& op, const KernelId& kernel) {
  return is_int8(kernel) ? Dtype::int8 : activations_of(op);
}

// Bytes of the weights' values.
[[nodiscard]] Bytes values_of(const Op& op) {
  return storage(op.weight_format.dtype, static_cast<double>(op.n) * static_cast<double>(op.k));
}

void add_result(Streams& streams, const Op& op) {
  const Dtype dtype = op.stage == Stage::after_layers ? Dtype::f32 : activations_of(op);  // logits are F32
  streams.add(
      {.role = OperandRole::output, .unique = storage(dtype, static_cast<double>(op.m) * static_cast<double>(op.n))});
  if (op.num_operands > 3 && op.operands()[3].role == OperandRole::weight)  // a bias, in F32
    streams.add({.role = OperandRole::weight, .unique = storage(Dtype::f32, static_cast<double>(op.n))});
}

// Zero points of 32 columns are 16 bytes, so that the workgroups of neighbouring columns share their lines.
void add_weights(Streams& streams, const Op& op, const KernelId& kernel) {
  const Bytes all = op.operands().front().unique;
  if (kernel.kernel != Kernel::gptq_gemv) return streams.add({.role = OperandRole::weight, .unique = all});
  const double group = op.weight_format.group_size > 0 ? op.weight_format.group_size : static_cast<double>(op.k);
  const Bytes zeros = values_of(op) / group;
  streams.add({.role = OperandRole::weight, .unique = all - zeros});
  streams.add({.role = OperandRole::weight,
               .unique = zeros,
               .rest = RestOfLine::neighbours,
               .run = storage(Dtype::int4, kGptqGemvColumns)});
}

// Every workgroup reads all of x, a slab of 16 KiB at a time, and has columns of its own.
void add_gemv(Streams& streams, const Op& op, const KernelId& kernel) {
  const auto [m, n, k] = sizes_of(op);
  const double columns =
      is_gptq(kernel) ? kGptqGemvColumns : std::max(1, kGemvThreads / kernel.wave_size) * kGemvColumns;
  const Dtype x = read_of_x(op, kernel);
  streams.workgroups = std::ceil(n / columns);
  const double slabs = std::max(1.0, std::ceil(storage(x, kernel.rows * k) / Bytes(kGemvSlabBytes)));
  add_weights(streams, op, kernel);
  streams.add({.role = OperandRole::activation,
               .unique = storage(x, m * k),
               .workgroups = streams.workgroups,
               .between = (values_of(op) / streams.workgroups + storage(x, m * k)) / slabs});
  add_result(streams, op);
}

// `run` of each row at a time, where a workgroup asks for `slab` in all.
void take_slabs(Stream& stream, Bytes run, Bytes slab, Bytes pitch) {
  stream.rest = RestOfLine::same_workgroup;
  stream.run = run;
  stream.step = stream.between = slab;
  stream.pitch = pitch;
}

// How the rows of a product are cut.
struct RowCut {
  double tiles = 1;
  double tiles_of_weight = 1;  // that ask for the same weights
  double tiles_of_x = 1;       // and for the same row of x
};

// Row tiles start first, of int4 column tiles.
void add_gemm(Streams& streams, const Op& op, const KernelId& kernel, Units units, const RowCut& rows) {
  const auto [m, n, k] = sizes_of(op);
  const double row_tiles = rows.tiles;
  const double column_tiles = std::ceil(n / (is_gptq(kernel) ? kGptqGemmColumns : kGemmColumns));
  const Dtype x = read_of_x(op, kernel);
  const bool is_halves = (x == Dtype::f16 && kernel.stored == Dtype::f16) || units == Units::matrix;
  const double values = is_gptq(kernel) ? kGptqGemmStep : kGemmSlabWords * (is_int8(kernel) ? 4 : is_halves ? 2 : 1);
  const double weights = values_of(op) / (n * k) / Bytes(1);  // bytes of each
  const Bytes slab = std::min<double>(m, kernel.rows) * storage(x, values) + kGemmColumns * values * Bytes(weights);
  streams.workgroups = row_tiles * column_tiles;
  Stream weight{.role = OperandRole::weight,
                .unique = op.operands().front().unique,
                .workgroups = rows.tiles_of_weight,
                .stride = is_gptq(kernel) ? column_tiles : 1};
  if (!is_gptq(kernel)) take_slabs(weight, values * Bytes(weights), slab, k * Bytes(weights));
  Stream activation{.role = OperandRole::activation,
                    .unique = storage(x, m * k / rows.tiles_of_x),
                    .workgroups = column_tiles * rows.tiles_of_x,
                    .stride = is_gptq(kernel) ? 1 : row_tiles};
  take_slabs(activation, storage(x, values), slab, storage(x, k));
  streams.add(weight);
  streams.add(activation);
  add_result(streams, op);
}

// The row numbers of a tile, and where it begins, are little beside its rows, and are left out.
void add_expert_product(Streams& streams, const Op& op, const KernelId& kernel, Units units) {
  const double touched = std::max(1.0, op.groups.touched), k = static_cast<double>(op.k);
  const double x_rows = op.operands()[1].unique / storage(op.activation_dtype, k);
  const RowCut rows{expert_tiles(op), expert_tiles(op) / touched, static_cast<double>(op.m) / x_rows};
  if (kernel.rows > kGemvMaxRows) return add_gemm(streams, op, kernel, units, rows);
  const double column_tiles = std::ceil(static_cast<double>(op.n) / expert_columns(kernel));
  const Dtype x = activations_of(op);
  streams.workgroups = rows.tiles * column_tiles;
  streams.add({.role = OperandRole::weight,
               .unique = op.operands().front().unique,
               .workgroups = rows.tiles_of_weight,
               .stride = is_gptq(kernel) ? column_tiles : 1});
  streams.add({.role = OperandRole::activation,
               .unique = storage(x, x_rows * k),
               .workgroups = column_tiles * rows.tiles_of_x,
               .stride = is_gptq(kernel) ? 1 : rows.tiles});
  add_result(streams, op);
}

}  // namespace

void add_product(Streams& streams, const Op& op, const KernelId& kernel, Units units, double parts) {
  if (op.groups.count > 0) return add_expert_product(streams, op, kernel, units);
  const double row_tiles = std::ceil(static_cast<double>(op.m) / kernel.rows);
  if (op.m <= kGemvMaxRows)
    add_gemv(streams, op, kernel);
  else
    add_gemm(streams, op, kernel, units, {row_tiles, row_tiles, 1});
  streams.workgroups *= std::max(1.0, parts);
}

void add_sums(Streams& streams, const Op& op, double parts) {
  if (parts <= 1) return;
  const Bytes sums = storage(Dtype::f32, parts * static_cast<double>(op.m) * static_cast<double>(op.n));
  streams.add({.role = OperandRole::output, .unique = sums});
  streams.add({.role = OperandRole::activation, .unique = sums});
}

}  // namespace dculab::lower::dculab_gpu
