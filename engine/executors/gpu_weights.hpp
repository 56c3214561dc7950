// A model's weights in the memory of a device, as its kernels read them.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "engine/checkpoint/model_weights.hpp"
#include "engine/memory/device_memory.hpp"
#include "kernels/gpu/args.hpp"

namespace dculab::engine {

// A matrix [rows, columns] in one of the formats that there are kernels for; the members of the others are null. Where
// each expert has its own, every array is followed by those of the other experts.
struct GpuMatrix {
  int rows = 0, columns = 0;
  int experts = 0;                           // 0: one matrix for all tokens
  WeightFormat format{};                     // {f16, 0}, {int4, 128}, {int8, columns}: what a plan says
  kernels::gpu::Input values{};              // f32, f16, bf16, fp8_e4m3: [rows, columns]
  kernels::gpu::WeightScales scales{};       // fp8_e4m3
  kernels::GptqWeightView gptq{};            // int4
  const std::int32_t* x_perm = nullptr;      // int4 in act-order: see kernels::gpu::GptqMatmul
  const std::int8_t* int8_values = nullptr;  // int8: [rows, columns]
  const float* int8_scales = nullptr;        // int8: [rows]
  const float* bias = nullptr;               // [rows], or null
};

struct GpuNorm {
  kernels::gpu::Input weight, bias;  // [hidden_size]; RMSNorm has no bias
};

// What a weight slot holds: a matrix (those that share their input stored as one), a norm, or norms of Q and of K.
struct GpuSlot {
  GpuMatrix matrix;
  GpuNorm norm;
  const float* correction_bias = nullptr;  // of a router: [num_experts], or null
  std::array<kernels::gpu::Input, 2> parts{};
};

using GpuSlots = std::array<GpuSlot, kWeightSlots>;

struct GpuWeights {
  kernels::gpu::Input embed_tokens;  // [vocab_size, hidden_size]
  std::vector<GpuSlots> layers;      // [num_hidden_layers]
  GpuSlots outside;                  // the layers
  std::vector<DeviceMemory> memory;

  [[nodiscard]] const GpuSlot& in(WeightSlot slot, int layer) const {
    const GpuSlots& slots = is_of_layer(slot) ? layers[static_cast<std::size_t>(layer)] : outside;
    return slots[static_cast<std::size_t>(slot)];
  }
};

// Copies everything once. Throws InputError when matrices to be stored as one differ in format, and for quantized
// weights that no kernel serves.
[[nodiscard]] GpuWeights upload_weights(const std::shared_ptr<kernels::gpu::Device>& device,
                                        const ModelWeights& weights);

}  // namespace dculab::engine
