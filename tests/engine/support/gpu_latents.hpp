// A model with latents that is small enough for the GPU kernels on the host, and how far its logits may lie apart.
#pragma once

#include "tests/engine/support/gpu_golden_steps.hpp"

namespace dculab::engine {

// DeepSeek-V3's shape with small parts; rows of latents are 48 values, which FP8 caches take.
inline ModelShape latent_shape(int max_position_embeddings = 512) {
  ModelShape shape = golden_weights("deepseek_v3").shape;
  shape.max_position_embeddings = max_position_embeddings;
  for (LayerKind& kind : shape.kinds) std::get<Mla>(kind.attention).kv_lora_rank = 40;
  return shape;
}

// Roundings to F16 as gpu_logits_test.cpp counts them. The CPU engine's expanded K and V, and its queries over latents,
// are F32. Of each layer, in prefill: K, which counts twice, because an error e of a score changes its weight by a
// factor of 1 + 2 e; V; and the latent, where another last bit rounds to the next value of the cache. In decode the
// query, twice, and the latent. In F16 also two norms and those of both latents, qkv_a_proj, q_b_proj, the rotated
// parts, both absorbed products, attention and o_proj; of experts and shared experts gate and up, SiLU, down_proj, and
// their sum.
inline double latent_tolerance(const ModelShape& shape, Dtype activation) {
  const double layers = shape.num_layers();
  return (activation == Dtype::f32 ? 4 * layers + 1 : 22 * layers + 2) * 0x1p-11;
}

}  // namespace dculab::engine
