#include "lower/expert_product.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "lower/matmul.hpp"

namespace dculab::lower {
namespace {

[[nodiscard]] double touched(const Op& op) { return std::max(1.0, op.groups.touched); }

constexpr int kScratchpadSortingKernels = 3;  // the choice of experts, a fill, the sort

constexpr Bytes kExpertStep{32};  // of a row, that matrix instructions take at a time

void set_expert_arithmetic(const Op& op, const ExpertTile& tile, const Tiles& cuts, const Device& device,
                           Arithmetic& arithmetic) {
  const double weights = static_cast<double>(op.n) * static_cast<double>(op.k) * cuts.rows;
  const double padded_rows = cuts.rows * tile.rows, rows = std::max(1.0, static_cast<double>(op.m));
  arithmetic.pipe = Pipe::matmul;
  arithmetic.multiplied_in = multiplied_in(op);
  arithmetic.multiply = device.has_matrix_cores ? op.flops : padded_rows / rows * op.flops;
  arithmetic.rows = rows / cuts.rows;
  arithmetic.tile_rows = tile.rows;
  arithmetic.stored_values = tile.per_weight > 0 ? 0 : weights;
  arithmetic.stored = op.weight_format.dtype;
  arithmetic.issued = FlopCount(tile.per_value * (weights + padded_rows * static_cast<double>(op.k) * cuts.columns) +
                                tile.per_weight * weights);
  if (op.activations == ActivationMode::int8)
    arithmetic.integer_instructions = integer_instructions(op, padded_rows, weights);
}

void set_expert_slabs(const Op& op, const ExpertTile& tile, Launch& launch) {
  const double rows = std::min(static_cast<double>(tile.rows), launch.arithmetic.rows);
  launch.slabs = std::ceil(storage(op.activation_dtype, static_cast<double>(op.k)) / tile.depth);
  launch.slabs_ahead = std::max(1, tile.ahead);
  launch.slab = (rows + tile.columns) * tile.depth;
  launch.slab_steps = tile.depth / kExpertStep;
}

}  // namespace

void lower_experts(const Op& op, const ExpertKernel& kernel, std::int64_t tokens, const Device& device,
                   Launch& launch) {
  if (rounds_activations(op))
    return lower_experts(with_rounded_activations(op, Rounding::kernel_before, launch), kernel, tokens, device, launch);
  const ExpertTile tile = kernel.tile(op, tokens, device);
  const auto size = static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(tile.rows)) - 1);
  const Tiles cuts{std::max(1.0, op.groups.tiles.at(size)), std::ceil(static_cast<double>(op.n) / tile.columns)};
  launch.tiles = cuts;
  for (Access& access : launch.accesses()) {
    if (access.role == OperandRole::weight) access.requests = cuts.rows / touched(op);
    if (access.role == OperandRole::activation && access.unique > Bytes())  // rows of tokens go to several experts
      access.requests = cuts.columns *
                        storage(op.activation_dtype, static_cast<double>(op.m) * static_cast<double>(op.k)) /
                        access.unique;
  }
  launch.grid.workgroups = launch.grid.most_workgroups = cuts.rows * cuts.columns;
  set_expert_arithmetic(op, tile, cuts, device, launch.arithmetic);
  set_expert_slabs(op, tile, launch);
  launch.product = ProductShape{op.weight_format.dtype, op.activations, launch.arithmetic.rows, op.k};
  launch.resources = tile.resources;
  launch.knows_resources = true;
  launch.loads_before = tile.loads_before;
  launch.parts = tile.parts;
  launch.sums = static_cast<double>(op.m) * static_cast<double>(op.n);
  launch.overlap = kernel.waits ? Overlap::partial : is_hopper(device) ? Overlap::all : Overlap::caches;
  launch.draws_for_idle = true;
}

void sort_by_expert(const Op& op, const ExpertKernel& kernel, Launch& launch) {
  const double experts = static_cast<double>(op.n);
  launch.kernels = kernel.sorting_kernels;
  if (op.n >= kernel.sorts_in_scratchpad_below) {
    launch.chained_loads = kernel.sorting_loads_of_expert * experts;
    return;
  }
  constexpr double kBytesOfChoice = 12;  // a weight, an expert, a place
  const double choices = op.operands()[1].unique / Bytes(kBytesOfChoice);
  launch.kernels = kScratchpadSortingKernels;
  launch.chained_steps = 2 * (experts + std::ceil(choices / experts));
}

Op of_one_expert(const Op& op) {
  Op one = op;
  const double experts = touched(op);
  one.groups = {};
  one.m = std::max<std::int64_t>(1, std::llround(static_cast<double>(op.m) / experts));
  one.flops = op.flops / experts;
  for (int index = 0; index < one.num_operands; ++index)
    one.operand_storage[static_cast<std::size_t>(index)].unique *= 1 / experts;
  return one;
}

void extend_to_all_experts(const Op& op, Launch& launch) {
  const double experts = touched(op);
  for (Access& access : launch.accesses()) access.unique *= experts;
  Bytes tokens;  // of which rows go to several experts
  for (const Operand& operand : op.operands())
    if (operand.role == OperandRole::activation) tokens = operand.unique;
  for (Access& access : launch.accesses())
    if (access.role == OperandRole::activation && tokens > Bytes())
      access.requests *= storage(op.activation_dtype, static_cast<double>(op.m) * static_cast<double>(op.k)) / tokens;
  launch.grid.workgroups *= experts;
  launch.grid.most_workgroups *= experts;
  launch.tiles.rows *= experts;
  Arithmetic& arithmetic = launch.arithmetic;
  arithmetic.multiply *= experts;
  arithmetic.stored_values *= experts;
  arithmetic.softmax *= experts;
  arithmetic.issued *= experts;
  arithmetic.packed *= experts;
  arithmetic.integer_instructions *= experts;
  launch.sums *= experts;
  launch.spills.moved *= experts;
  launch.most_parts = 1;
  if (launch.parts == 0) launch.parts = 1;
  launch.streams.count = 0;
}

}  // namespace dculab::lower
