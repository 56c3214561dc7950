// A model's weights in the memory of a device, as its kernels read them.
#pragma once

#include <memory>
#include <vector>

#include "engine/checkpoint/model_weights.hpp"
#include "engine/memory/device_memory.hpp"
#include "kernels/gpu/args.hpp"

namespace dculab::engine {

// A matrix [rows, columns] in one of the formats that there are kernels for; the members of the others are null.
struct GpuMatrix {
  int rows = 0, columns = 0;
  WeightFormat format{};                     // {f16, 0}, {int4, 128}, {int8, columns}: what a plan says
  kernels::gpu::Input values{};              // f32, f16, bf16: [rows, columns]
  kernels::GptqWeightView gptq{};            // int4
  const std::int32_t* x_perm = nullptr;      // int4 in act-order: see kernels::gpu::GptqMatmul
  const std::int8_t* int8_values = nullptr;  // int8: [rows, columns]
  const float* int8_scales = nullptr;        // int8: [rows]
  const float* bias = nullptr;               // [rows], or null
};

struct GpuNorm {
  kernels::gpu::Input weight, bias;  // [hidden_size]; RMSNorm has no bias
};

// Matrices that share their input are stored as one: Q, K and V; gate and up.
struct GpuLayerWeights {
  GpuNorm input_layernorm;
  GpuMatrix qkv_proj;  // [query_width + 2 * kv_width, hidden_size]
  GpuMatrix o_proj;    // [hidden_size, query_width]
  GpuNorm post_attention_layernorm;
  GpuMatrix gate_up_proj;  // [2 * intermediate_size, hidden_size]; a plain MLP has up only
  GpuMatrix down_proj;     // [hidden_size, intermediate_size]
};

struct GpuWeights {
  kernels::gpu::Input embed_tokens;   // [vocab_size, hidden_size]
  GpuNorm word_embeddings_layernorm;  // BLOOM only
  std::vector<GpuLayerWeights> layers;
  GpuNorm norm;
  GpuMatrix lm_head;
  std::vector<DeviceMemory> memory;
};

// Copies everything once. Throws InputError when matrices to be stored as one differ in format, and for quantized
// weights that no kernel serves.
[[nodiscard]] GpuWeights upload_weights(const std::shared_ptr<kernels::gpu::Device>& device,
                                        const ModelWeights& weights);

}  // namespace dculab::engine
