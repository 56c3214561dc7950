#include "engine/recording/quantized_matmul.hpp"

#include <algorithm>
#include <memory>

#include "engine/memory/device_memory.hpp"
#include "kernels/gpu/open_device.hpp"
#include "lower/dculab_gpu/geometry.hpp"
#include "lower/dculab_gpu/gptq_plan.hpp"

namespace dculab::engine {
namespace {

using DevicePointer = std::shared_ptr<kernels::gpu::Device>;

[[nodiscard]] DeviceMemory zeros(const DevicePointer& device, double bytes, OperandRole holds) {
  const auto size = static_cast<std::size_t>(bytes);
  DeviceMemory memory(device, size, holds);
  device->fill(memory.as(), 0, size);
  return memory;
}

// Activations are f16 or f32 on a GPU.
[[nodiscard]] Dtype activation_of(const Op& op) { return op.activation_dtype == Dtype::f16 ? Dtype::f16 : Dtype::f32; }

void run_gptq(const DevicePointer& device, const Op& op) {
  const auto m = static_cast<int>(op.m), n = static_cast<int>(op.n), k = static_cast<int>(op.k);
  const int group_size = op.weight_format.group_size > 0 ? op.weight_format.group_size : k;
  const double groups = (k + group_size - 1) / group_size;
  const Dtype activation = activation_of(op);
  const DeviceMemory x = zeros(device, 1.0 * m * k * bits(activation) / 8, OperandRole::activation);
  const DeviceMemory qweight = zeros(device, 0.5 * k * n, OperandRole::weight);
  const DeviceMemory qzeros = zeros(device, groups * n / 2, OperandRole::weight);
  const DeviceMemory scales = zeros(device, groups * n * 2, OperandRole::weight);
  const DeviceMemory y = zeros(device, 1.0 * m * n * bits(activation) / 8, OperandRole::output);
  const std::size_t floats = lower::dculab_gpu::gptq_matmul_workspace(m, n, k);
  const DeviceMemory workspace = zeros(device, static_cast<double>(floats) * sizeof(float), OperandRole::output);
  device->gptq_matmul({.x = {x.as(), activation},
                       .weight = {.qweight = qweight.as<std::uint32_t>(),
                                  .qzeros = qzeros.as<std::uint32_t>(),
                                  .scales = scales.as<std::uint16_t>(),
                                  .in_features = k,
                                  .out_features = n,
                                  .group_size = group_size},
                       .y = {y.as(), activation},
                       .m = m,
                       .y_stride = n,
                       .workspace = floats > 0 ? workspace.as<float>() : nullptr});
}

void run_int8(const DevicePointer& device, const Op& op) {
  const auto m = static_cast<int>(op.m), n = static_cast<int>(op.n), k = static_cast<int>(op.k);
  const Dtype activation = activation_of(op);
  const DeviceMemory x = zeros(device, 1.0 * m * k, OperandRole::activation);
  const DeviceMemory x_scale = zeros(device, 4.0 * m, OperandRole::activation);
  const DeviceMemory w = zeros(device, 1.0 * n * k, OperandRole::weight);
  const DeviceMemory w_scale = zeros(device, 4.0 * n, OperandRole::weight);
  const DeviceMemory y = zeros(device, 1.0 * m * n * bits(activation) / 8, OperandRole::output);
  device->int8_matmul({.x = x.as<std::int8_t>(),
                       .x_scale = x_scale.as<float>(),
                       .w = w.as<std::int8_t>(),
                       .w_scale = w_scale.as<float>(),
                       .y = {y.as(), activation},
                       .m = m,
                       .n = n,
                       .k = k,
                       .y_stride = n});
}

// A scale for 128 rows and 128 columns, as DeepSeek's checkpoints have; the format of an op does not say. The price
// leaves scales out.
void run_fp8(const DevicePointer& device, const Op& op) {
  const auto m = static_cast<int>(op.m), n = static_cast<int>(op.n), k = static_cast<int>(op.k);
  constexpr int kBlockShift = 7;
  const int row_blocks = ((n - 1) >> kBlockShift) + 1, column_blocks = ((k - 1) >> kBlockShift) + 1;
  const Dtype activation = activation_of(op), output = op.output == Buffer::logits ? Dtype::f32 : activation;
  const DeviceMemory x = zeros(device, 1.0 * m * k * bits(activation) / 8, OperandRole::activation);
  const DeviceMemory w = zeros(device, 1.0 * n * k, OperandRole::weight);
  const DeviceMemory scale = zeros(device, 4.0 * row_blocks * column_blocks, OperandRole::weight);
  const DeviceMemory y = zeros(device, 1.0 * m * n * bits(output) / 8, OperandRole::output);
  const std::size_t floats = lower::dculab_gpu::matmul_workspace(m, n, k);
  const DeviceMemory workspace = zeros(device, static_cast<double>(floats) * sizeof(float), OperandRole::output);
  device->matmul({.x = {x.as(), activation},
                  .w = {w.as(), Dtype::fp8_e4m3},
                  .y = {y.as(), output},
                  .m = m,
                  .n = n,
                  .k = k,
                  .y_stride = n,
                  .workspace = floats > 0 ? workspace.as<float>() : nullptr,
                  .scales = {.values = scale.as<float>(),
                             .row_shift = kBlockShift,
                             .column_shift = kBlockShift,
                             .column_blocks = column_blocks}});
}

}  // namespace

std::vector<AddressTrace> record_quantized_matmul(const Op& op, int wave_size) {
  kernels::gpu::host::AddressRecorder recorder;
  const DevicePointer device = kernels::gpu::open_host_device({.wave_size = wave_size, .recorder = &recorder});
  if (op.weight_format.dtype == Dtype::int4)
    run_gptq(device, op);
  else if (op.weight_format.dtype == Dtype::fp8_e4m3)
    run_fp8(device, op);
  else
    run_int8(device, op);
  return recorder.take_launches();
}

}  // namespace dculab::engine
