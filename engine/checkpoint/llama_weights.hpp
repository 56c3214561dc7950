// The weights of a Llama model, and which tensors it is made of.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/model_shape.hpp"
#include "kernels/ops.hpp"

namespace dculab::engine {

// One decoder layer. Matrices are [out_features, in_features]; the norms [hidden_size]. Names are Hugging Face's.
struct LayerWeights {
  kernels::WeightView input_layernorm;
  kernels::WeightView q_proj;  // [num_attention_heads * head_dim, hidden_size]
  kernels::WeightView k_proj;  // [num_key_value_heads * head_dim, hidden_size]
  kernels::WeightView v_proj;  // [num_key_value_heads * head_dim, hidden_size]
  kernels::WeightView o_proj;  // [hidden_size, num_attention_heads * head_dim]
  kernels::WeightView post_attention_layernorm;
  kernels::WeightView gate_proj;  // [intermediate_size, hidden_size]
  kernels::WeightView up_proj;    // [intermediate_size, hidden_size]
  kernels::WeightView down_proj;  // [hidden_size, intermediate_size]
};

// A whole model. The views point into `memory`; copies share it.
struct LlamaWeights {
  ModelShape shape;
  kernels::WeightView embed_tokens;  // [vocab_size, hidden_size]
  std::vector<LayerWeights> layers;  // [num_hidden_layers]
  kernels::WeightView norm;          // [hidden_size]
  kernels::WeightView lm_head;       // [vocab_size, hidden_size]; embed_tokens when tied
  std::vector<std::shared_ptr<const void>> memory;
};

// A tensor that the model needs, and the view that must point to it.
struct WeightSlot {
  std::string name;  // in the checkpoint: "model.layers.0.self_attn.q_proj.weight"
  int rows = 0;
  int columns = 0;  // 0: a vector of `rows` values
  kernels::WeightView* view = nullptr;

  [[nodiscard]] std::size_t values() const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns == 0 ? 1 : columns);
  }
};

// All tensors of weights.shape, in the order a step reads them; sizes weights.layers. A tied head is not among them.
[[nodiscard]] std::vector<WeightSlot> weight_slots(LlamaWeights& weights);

// Lets a tied head be the embedding, once all slots are filled.
void tie_head(LlamaWeights& weights);

}  // namespace dculab::engine
