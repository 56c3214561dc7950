#include "lower/lower.hpp"

#include <algorithm>
#include <cmath>

#include "core/kivi.hpp"
#include "lower/attention.hpp"
#include "lower/dculab_gpu/compiled_kernels.hpp"
#include "lower/dculab_gpu/kernels.hpp"
#include "lower/dculab_gpu/streams.hpp"
#include "lower/matmul.hpp"

namespace dculab::lower {
namespace {

constexpr double kValuesPerWorkgroup = 2048;  // elementwise kernels: 256 threads, 8 values each

[[nodiscard]] double elementwise_workgroups(const Op& op, const Device& device) {
  const double rows = static_cast<double>(op.m);
  if (rows == 0) return 0;
  if (device.kind == DeviceKind::cpu) return rows / std::ceil(rows / device.compute_units);
  if (op.kind == OpKind::rms_norm || op.kind == OpKind::layer_norm) return rows;
  return rows * std::ceil(static_cast<double>(op.n) / kValuesPerWorkgroup);
}

// Of the CPU's KIVI kernel (kernels/cpu/kivi.cpp) for each value of a group, one at a time so that all lanes but one
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

[[nodiscard]] Launch lower_elementwise(const Op& op, const Device& device) {
  Launch launch = launch_of(op);
  launch.grid.workgroups = launch.grid.most_workgroups = elementwise_workgroups(op, device);
  launch.arithmetic.multiply = op.flops;
  if (device.kind == DeviceKind::cpu) {
    if (op.kind == OpKind::activation_mul && op.m > 0) add_exponentials(launch, op);
    if (op.kind == OpKind::rope_and_cache && is_kivi(op.attention.kv_dtype)) add_kivi_groups(launch, op);
    return launch;
  }
  if (const auto compiled = dculab_gpu::compiled_resources(op, device)) launch.resources = *compiled;
  if (op.kind == OpKind::rope_and_cache && op.rotates) launch.kernels = 2;
  return launch;
}

[[nodiscard]] Launch lower_by_kind(const Op& op, const StepPlan& step, const Device& device, const Kernels& kernels) {
  switch (op.kind) {
    case OpKind::matmul:
      return lower_matmul(op, matmul_kernel_of(kernels, op, device), device);
    case OpKind::attention_prefill:
    case OpKind::attention_decode:
    case OpKind::attention_scores:
      return lower_attention(op, step, attention_kernel_of(kernels, op, device), device, kernels.parameters);
    case OpKind::embedding:
    case OpKind::rms_norm:
    case OpKind::layer_norm:
    case OpKind::rope_and_cache:
    case OpKind::shift_sink_keys:
    case OpKind::activation_mul:
      return lower_elementwise(op, device);
    case OpKind::all_reduce:
    case OpKind::all_gather: {
      Launch launch = launch_of(op);
      launch.exchanges.devices = op.devices;
      collective_kernel_of(kernels, op, device).add_ways(op, device, launch.exchanges);
      return launch;
    }
  }
  return {};
}

[[nodiscard]] bool is_scattered(const Op& op, const Operand& operand) {
  const bool kv = operand.role == OperandRole::kv_read || operand.role == OperandRole::kv_write;
  return kv || (op.kind == OpKind::embedding && operand.role == OperandRole::weight);
}

}  // namespace

Launch launch_of(const Op& op) {
  Launch launch;
  for (const Operand& operand : op.operands())
    launch.access_storage[static_cast<std::size_t>(launch.num_accesses++)] = {
        .role = operand.role,
        .unique = operand.unique,
        .contiguous_run = operand.contiguous_run,
        .is_scattered = is_scattered(op, operand),
        .runs_in_step = static_cast<double>(std::max(1, op.attention.num_kv_heads))};
  return launch;
}

namespace {

// Written and read once more, by nobody else: as the output counts it.
void add_unfused(const Op& op, const UnfusedWork& work, const Device& device, Launch& launch) {
  Bytes extra;
  for (const Operand& operand : op.operands())
    if (operand.role == OperandRole::activation || operand.role == OperandRole::output)
      extra += (work.activation_scale - 1) * operand.unique;
  const bool widens = device.has_matrix_cores && bits(op.weight_format.dtype) < 16;
  if (op.kind == OpKind::matmul && widens && op.m >= work.widened_from_rows)
    extra += Bytes(work.bytes_per_widened_weight * static_cast<double>(op.n) * static_cast<double>(op.k));
  if (op.kind == OpKind::attention_prefill)
    extra += Bytes(work.bytes_per_score * op.attention.score_pairs * op.attention.num_query_heads);
  const auto add = [extra](auto&& all) {
    for (auto& each : all)
      if (each.role == OperandRole::output && each.unique > Bytes()) {
        each.unique += extra;
        return;
      }
  };
  add(launch.accesses());
  add(launch.streams.all());
}

// Whose products are ours, so is the rest.
[[nodiscard]] bool are_ours(const Op& op, const Device& device, const Kernels& kernels) {
  return &matmul_kernel_of(kernels, op, device) == &dculab_gpu::kMatmul;
}

}  // namespace

Launch lower(const Op& op, const StepPlan& step, const Device& device, const Kernels& kernels) {
  Launch launch = lower_by_kind(op, step, device, kernels);
  if (are_ours(op, device, kernels)) dculab_gpu::add_streams(launch.streams, op, device.waves.wave_size, launch.parts);
  add_unfused(op, kernels.unfused, device, launch);
  if (device.kind == DeviceKind::cpu) {
    launch.waits_for_loads = false;
    launch.comes_back = true;
    launch.may_run_inline = launch.arithmetic.pipe != Pipe::attention;
    return launch;
  }
  launch.workgroups_per_unit = std::max(1, workgroups_per_unit(device.waves, launch.resources));
  launch.waves_per_workgroup = waves_per_workgroup(device.waves, launch.resources);
  return launch;
}

}  // namespace dculab::lower
