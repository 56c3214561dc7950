// A mixture as large as DeepSeek-V3's: 256 routed experts in 8 groups, 8 of them for a token, and a shared one.
#pragma once

#include "model/model_shape.hpp"

namespace dculab::sim::test {

// Two dense layers and four with experts, attention by latents.
inline ModelShape deepseek_like() {
  ModelShape model;
  model.name = "deepseek-like";
  model.hidden_size = 7168;
  model.vocab_size = 4096;
  model.max_position_embeddings = 1 << 16;
  model.dtype = Dtype::bf16;
  model.quantization = WeightFormat{Dtype::fp8_e4m3, 0};
  model.kinds.clear();
  LayerKind dense;
  dense.attention = Mla{.num_attention_heads = 128,
                        .q_lora_rank = 1536,
                        .kv_lora_rank = 512,
                        .qk_nope_head_dim = 128,
                        .qk_rope_head_dim = 64,
                        .v_head_dim = 128};
  dense.mlp.intermediate_size = 18432;
  LayerKind mixture = dense;
  mixture.mlp.intermediate_size = 2048;
  mixture.experts = Experts{
      .num_experts = 256, .num_experts_per_tok = 8, .intermediate_size = 2048, .num_groups = 8, .groups_per_tok = 4};
  for (int layer = 0; layer < 2; ++layer) add_layer(model, dense);
  for (int layer = 0; layer < 4; ++layer) add_layer(model, mixture);
  return model;
}

}  // namespace dculab::sim::test
