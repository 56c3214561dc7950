// What a step needs on the device besides weights and KV: activations, allocated once for the largest step, and how
// much they and its inputs (engine/step) take.
#pragma once

#include <array>
#include <memory>

#include "engine/executors/plan_walk.hpp"
#include "engine/memory/device_memory.hpp"
#include "engine/step/gpu_step_inputs.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

// Floats of partial results of a product of m rows with a matrix [n, k] in that format.
[[nodiscard]] std::size_t split_k_floats(Dtype weights, int m, int n, int k);

// Floats that the hungriest matmul, or the attention over contexts of `longest_context` tokens, needs for partial
// results.
[[nodiscard]] std::size_t gpu_workspace_floats(const ModelShape& shape, const GpuStepLimits& limits,
                                               int partition_tokens, int longest_context);

// Device memory of all of that, at most: what a step takes besides weights and KV pool.
[[nodiscard]] Bytes gpu_step_memory(const ModelShape& shape, Dtype activation, const GpuStepLimits& limits,
                                    int partition_tokens, int block_size);

// Formats: `activation` is f16 or f32; the residual and the logits are always f32.
struct GpuActivations {
  GpuActivations(const std::shared_ptr<kernels::gpu::Device>& device, const ModelShape& shape, Dtype activation,
                 const GpuStepLimits& limits);

  [[nodiscard]] const DeviceMemory& operator[](Buffer buffer) const { return buffers[index(buffer)]; }

  std::array<DeviceMemory, kBuffers> buffers;
  DeviceMemory quantized;         // [tokens, in-features], int8: what int8 weights are multiplied by
  DeviceMemory quantized_scales;  // [tokens]
};

}  // namespace dculab::engine
