#include "lower/elementwise.hpp"

#include <algorithm>
#include <cmath>

#include "core/kv/kivi.hpp"
#include "lower/attention.hpp"

namespace dculab::lower {
namespace {

constexpr double kValuesPerWorkgroup = 2048;  // elementwise kernels: 256 threads, 8 values each

[[nodiscard]] bool writes_cache(const Op& op) {
  return std::ranges::any_of(op.operands(), [](const Operand& each) { return each.role == OperandRole::kv_write; });
}

[[nodiscard]] double elementwise_workgroups(const Op& op, const Device& device) {
  const double rows = static_cast<double>(op.m);
  if (rows == 0) return 0;
  if (device.kind == DeviceKind::cpu) return rows / std::ceil(rows / device.compute_units);
  if (op.kind == OpKind::rms_norm || op.kind == OpKind::layer_norm) return rows;
  if (op.kind == OpKind::route_tokens) return std::ceil(rows * device.waves.wave_size / KernelResources{}.threads);
  return rows * std::ceil(static_cast<double>(op.n) / kValuesPerWorkgroup);
}

// Of the CPU's KIVI kernel (kernels/cpu/kv/kivi.cpp) for each value of a group, one at a time so that all lanes but one
// are idle: two comparisons, a subtraction, a division (as long as four), two additions that round, a comparison, a
// conversion; and to widen one of the residual.
constexpr double kGroupedInstructions = 12;
constexpr double kResidualInstructions = 3;

// Of an exponential on a CPU, beside the FLOP that the plan counts: reduced by powers of two, a polynomial, scaled
// back; the division takes as long as four. GELU's erfc and tanh take about as many again.
constexpr double kSiluInstructions = 20;
constexpr double kGeluInstructions = 26;

void add_exponentials(Launch& launch, const Op& op) {
  const double values = static_cast<double>(op.m) * static_cast<double>(op.n), flops = op.flops.value() / values;
  if (flops < 6) return;  // of the plan's: silu has 6, gelu more, others no exponential
  launch.arithmetic.stored_values = values;
  launch.arithmetic.shaping_per_value = flops < 8 ? kSiluInstructions : kGeluInstructions;
}

// The groups of tokens that a step completes are quantized, a task for each group and KV head.
void add_kivi_groups(Launch& launch, const Op& op) {
  const Dtype dtype = op.attention.kv_dtype;
  double grouped = 0, from_residual = 0, head = 1;
  for (const Operand& operand : op.operands()) {
    if (operand.role == OperandRole::kv_read) from_residual = operand.unique / storage(Dtype::f16, 1);
    if (operand.role != OperandRole::kv_write) continue;
    head = std::round(operand.contiguous_run / storage(dtype, 1));
    grouped = head * (operand.unique / kv_storage(dtype, head, static_cast<int>(head)));
  }
  if (grouped == 0) return;
  launch.arithmetic.stored_values = grouped;
  launch.arithmetic.shaping_per_value =
      kCpuLanes * (kGroupedInstructions + kResidualInstructions * from_residual / grouped);
  const double tasks = grouped / (2 * kKiviGroup * head);  // K and V
  launch.grid.most_workgroups = std::max(launch.grid.workgroups, tasks);
}

}  // namespace

void lower_elementwise(const Op& op, const Device& device, Launch& launch) {
  launch.grid.workgroups = launch.grid.most_workgroups = elementwise_workgroups(op, device);
  launch.arithmetic.multiply = op.flops;
  if (device.kind == DeviceKind::gpu) {
    const bool routes = op.kind == OpKind::route_tokens;  // chooses, then sorts
    if (routes || (op.kind == OpKind::rope_and_cache && op.rotates && writes_cache(op))) launch.kernels = 2;
    return;
  }
  if (op.kind == OpKind::activation_mul && op.m > 0) add_exponentials(launch, op);
  if (op.kind == OpKind::rope_and_cache && is_kivi(op.attention.kv_dtype)) add_kivi_groups(launch, op);
}

}  // namespace dculab::lower
