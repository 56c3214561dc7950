// Model shapes for tests, from their Hugging Face config.json.
#pragma once

#include "model/model_shape.hpp"

namespace dculab::sim::test {

inline ModelShape llama_2_7b() {
  ModelShape model;
  model.name = "llama-2-7b";
  model.hidden_size = 4096;
  model.kinds[0].mlp.intermediate_size = 11008;
  model.layers.assign(32, 0);
  model.kinds[0].gqa().heads = {32, 32, 128};
  model.vocab_size = 32000;
  model.max_position_embeddings = 4096;
  return model;
}

inline ModelShape llama_3_8b() {
  ModelShape model = llama_2_7b();
  model.name = "llama-3-8b";
  model.kinds[0].mlp.intermediate_size = 14336;
  model.kinds[0].gqa().heads.num_key_value_heads = 8;
  model.vocab_size = 128256;
  model.max_position_embeddings = 8192;
  return model;
}

// 8 query heads, small enough for the last-level cache of a CPU: 11 MB in BF16.
inline ModelShape tiny_llama() {
  ModelShape model;
  model.name = "tiny";
  model.hidden_size = 256;
  model.kinds[0].mlp.intermediate_size = 768;
  model.layers.assign(6, 0);
  model.kinds[0].gqa().heads = {8, 8, 32};
  model.vocab_size = 2048;
  model.max_position_embeddings = 2048;
  model.dtype = Dtype::bf16;
  return model;
}

// The lecture's case: MHA, plain MLP of 4D, FP16.
inline ModelShape lecture_model(int hidden, int head_dim) {
  ModelShape model = llama_2_7b();
  model.name = "lecture";
  model.hidden_size = hidden;
  model.kinds[0].mlp.intermediate_size = 4 * hidden;
  model.kinds[0].gqa().heads.head_dim = head_dim;
  model.kinds[0].gqa().heads.num_attention_heads = hidden / head_dim;
  model.kinds[0].gqa().heads.num_key_value_heads = hidden / head_dim;
  model.kinds[0].mlp.kind = MlpKind::plain;
  return model;
}

}  // namespace dculab::sim::test
