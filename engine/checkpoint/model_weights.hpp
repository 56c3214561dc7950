// The weights of a model, and which tensors of a checkpoint it is made of.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/op.hpp"
#include "kernels/ops.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

// One decoder layer, under the names that Llama's has in Hugging Face. Matrices are [out_features, in_features], norms
// [hidden_size]; a bias is F32, [out_features], and null where the model has none. Weights of LayerNorm are F32 too.
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
  kernels::WeightView input_layernorm_bias, post_attention_layernorm_bias;
  kernels::WeightView q_bias, k_bias, v_bias, o_bias;
  kernels::WeightView gate_bias, up_bias, down_bias;
};

// The values of a bias or of a LayerNorm's weight; null where there is none.
[[nodiscard]] inline const float* f32_values(const kernels::WeightView& vector) {
  return static_cast<const float*>(vector.data);
}

// A whole model. The views point into `memory`; copies share it.
struct ModelWeights {
  ModelShape shape;
  kernels::WeightView embed_tokens;                                               // [vocab_size, hidden_size]
  kernels::WeightView word_embeddings_layernorm, word_embeddings_layernorm_bias;  // BLOOM only
  std::vector<LayerWeights> layers;                                               // [num_hidden_layers]
  kernels::WeightView norm, norm_bias;                                            // [hidden_size]
  kernels::WeightView lm_head;  // [vocab_size, hidden_size]; embed_tokens when tied
  std::vector<std::shared_ptr<const void>> memory;
};

// What an op finds in a weight slot: matrices of `columns` in-features that share their input, or one vector (a
// norm's), each with its bias.
struct SlotWeights {
  std::array<kernels::WeightView, 3> weights, biases;  // null where there is none
  int count = 0;
  int columns = 0;  // of a vector 0
};

// Of `layer` where the slot is a layer's. Nothing where the model has no such weights.
[[nodiscard]] SlotWeights weights_in(const ModelWeights& weights, WeightSlot slot, int layer);

// Which rows of a tensor: `run` of them from `first` on, and again every `stride` rows. Q, K and V may be fused in one
// tensor, group by group: [KV heads, group size + 2, head_dim] rows.
struct RowPick {
  int tensor_rows = 0;  // 0: all rows, and the tensor has no others
  int first = 0, run = 0, stride = 0;
};

enum class SlotKind : std::uint8_t { matrix, norm, bias };

// A tensor that the model needs, or rows of one, and the view that must point to them.
struct TensorSlot {
  std::string name;  // in the checkpoint: "model.layers.0.self_attn.q_proj.weight"
  int rows = 0;
  int columns = 0;  // 0: a vector of `rows` values
  kernels::WeightView* view = nullptr;
  SlotKind kind = SlotKind::matrix;
  RowPick pick{};
  bool widened = false;  // to F32: biases, and the weights of LayerNorm
  WeightSlot slot = WeightSlot::none;
  int layer = 0;  // of a slot that each layer has

  [[nodiscard]] std::size_t values() const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns == 0 ? 1 : columns);
  }
  [[nodiscard]] bool is_part() const { return pick.tensor_rows > 0; }
  [[nodiscard]] int tensor_rows() const { return is_part() ? pick.tensor_rows : rows; }
  // The row of the tensor that is row `row` of the slot.
  [[nodiscard]] int tensor_row(int row) const {
    return is_part() ? pick.first + row / pick.run * pick.stride + row % pick.run : row;
  }
};

// All tensors of weights.shape, in the order a step reads them; sizes weights.layers. A tied head is not among them.
[[nodiscard]] std::vector<TensorSlot> tensor_slots(ModelWeights& weights);

// Lets a tied head be the embedding, once all slots are filled.
void tie_head(ModelWeights& weights);

}  // namespace dculab::engine
