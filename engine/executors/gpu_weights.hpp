// A model's weights in the memory of a device, in their stored format.
#pragma once

#include <memory>
#include <vector>

#include "engine/checkpoint/llama_weights.hpp"
#include "engine/memory/device_memory.hpp"
#include "kernels/gpu/args.hpp"

namespace dculab::engine {

// Matrices that share their input are stored as one: Q, K and V; gate and up.
struct GpuLayerWeights {
  kernels::gpu::Input input_layernorm;           // [hidden_size]
  kernels::gpu::Input qkv_proj;                  // [query_width + 2 * kv_width, hidden_size]
  kernels::gpu::Input o_proj;                    // [hidden_size, query_width]
  kernels::gpu::Input post_attention_layernorm;  // [hidden_size]
  kernels::gpu::Input gate_up_proj;              // [2 * intermediate_size, hidden_size]
  kernels::gpu::Input down_proj;                 // [hidden_size, intermediate_size]
};

struct GpuWeights {
  kernels::gpu::Input embed_tokens;
  std::vector<GpuLayerWeights> layers;
  kernels::gpu::Input norm;
  kernels::gpu::Input lm_head;
  std::vector<DeviceMemory> memory;
};

// Copies everything once. Throws InputError when matrices to be stored as one differ in format.
[[nodiscard]] GpuWeights upload_weights(const std::shared_ptr<kernels::gpu::Device>& device,
                                        const LlamaWeights& weights);

}  // namespace dculab::engine
