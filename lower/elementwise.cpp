#include "lower/elementwise.hpp"

#include <algorithm>
#include <cmath>

#include "lower/kv/kv_lowering.hpp"

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

}  // namespace

void lower_elementwise(const Op& op, const Device& device, Launch& launch) {
  launch.grid.workgroups = launch.grid.most_workgroups = elementwise_workgroups(op, device);
  launch.arithmetic.multiply = op.flops;
  if (device.kind == DeviceKind::gpu) {
    const bool routes = op.kind == OpKind::route_tokens;  // chooses, then sorts
    if (routes || (op.kind == OpKind::rope_and_cache && op.rotates && writes_cache(op))) launch.kernels = 2;
    if (kept_beside_cache(op) != nullptr) ++launch.kernels;  // before K is rotated
    return;
  }
  if (op.kind == OpKind::activation_mul && op.m > 0) add_exponentials(launch, op);
  const KvFormatLowering& format = kv_format_lowering(op.attention.kv_dtype);
  if (op.kind == OpKind::rope_and_cache && format.add_cache_work != nullptr) format.add_cache_work(launch, op);
}

}  // namespace dculab::lower
