#include "engine/checkpoint/model_weights.hpp"

namespace dculab::engine {
namespace {

enum class Bias : std::uint8_t { none, one };

Bias bias_if(bool has_bias) { return has_bias ? Bias::one : Bias::none; }

// Lists the tensors of a module under its prefix.
class SlotList {
 public:
  SlotList(const ModelShape& shape, std::vector<TensorSlot>& slots) : shape_(shape), slots_(slots) {}

  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }

  void norm(const char* name, kernels::WeightView& weight, kernels::WeightView& bias) {
    const bool layer_norm = shape_.norm == NormKind::layer_norm;
    add({prefix_ + name + ".weight", shape_.hidden_size, 0, &weight, SlotKind::norm, {}, layer_norm});
    if (layer_norm) add({prefix_ + name + ".bias", shape_.hidden_size, 0, &bias, SlotKind::bias, {}, true});
  }

  void matrix(const char* name, int rows, int columns, kernels::WeightView& weight, Bias has_bias,
              kernels::WeightView& bias, RowPick pick = {}) {
    add({prefix_ + name + ".weight", rows, columns, &weight, SlotKind::matrix, pick, false});
    if (has_bias == Bias::one) add({prefix_ + name + ".bias", rows, 0, &bias, SlotKind::bias, pick, true});
  }

 private:
  void add(TensorSlot slot) { slots_.push_back(std::move(slot)); }

  const ModelShape& shape_;
  std::vector<TensorSlot>& slots_;
  std::string prefix_;
};

// Llama, Mistral, Qwen2.
void add_llama_layer(SlotList& slots, const ModelShape& shape, LayerWeights& layer) {
  const int hidden = shape.hidden_size, inner = shape.intermediate_size;
  const Bias qkv = bias_if(shape.qkv_bias), mlp = bias_if(shape.mlp_bias);
  slots.norm("input_layernorm", layer.input_layernorm, layer.input_layernorm_bias);
  slots.matrix("self_attn.q_proj", shape.query_width(), hidden, layer.q_proj, qkv, layer.q_bias);
  slots.matrix("self_attn.k_proj", shape.kv_width(), hidden, layer.k_proj, qkv, layer.k_bias);
  slots.matrix("self_attn.v_proj", shape.kv_width(), hidden, layer.v_proj, qkv, layer.v_bias);
  slots.matrix("self_attn.o_proj", hidden, shape.query_width(), layer.o_proj, bias_if(shape.attention_output_bias),
               layer.o_bias);
  slots.norm("post_attention_layernorm", layer.post_attention_layernorm, layer.post_attention_layernorm_bias);
  if (shape.mlp == MlpKind::gated) slots.matrix("mlp.gate_proj", inner, hidden, layer.gate_proj, mlp, layer.gate_bias);
  slots.matrix("mlp.up_proj", inner, hidden, layer.up_proj, mlp, layer.up_bias);
  slots.matrix("mlp.down_proj", hidden, inner, layer.down_proj, mlp, layer.down_bias);
}

// BLOOM and Falcon. Q, K and V lie in one tensor; BLOOM's [heads, 3, head_dim] is the fused form of a group of one.
void add_bloom_layer(SlotList& slots, const ModelShape& shape, LayerWeights& layer) {
  const int hidden = shape.hidden_size, inner = shape.intermediate_size, head = shape.head_dim;
  const int query = shape.group_size() * head, group = query + 2 * head;
  const int fused = shape.num_key_value_heads * group;
  const Bias qkv = bias_if(shape.qkv_bias), mlp = bias_if(shape.mlp_bias);
  const bool two_norms = shape.block == BlockKind::parallel_two_norms;
  const char* const name = "self_attention.query_key_value";
  slots.norm(two_norms ? "ln_attn" : "input_layernorm", layer.input_layernorm, layer.input_layernorm_bias);
  slots.matrix(name, shape.query_width(), hidden, layer.q_proj, qkv, layer.q_bias, {fused, 0, query, group});
  slots.matrix(name, shape.kv_width(), hidden, layer.k_proj, qkv, layer.k_bias, {fused, query, head, group});
  slots.matrix(name, shape.kv_width(), hidden, layer.v_proj, qkv, layer.v_bias, {fused, query + head, head, group});
  slots.matrix("self_attention.dense", hidden, shape.query_width(), layer.o_proj, bias_if(shape.attention_output_bias),
               layer.o_bias);
  if (shape.block != BlockKind::parallel)
    slots.norm(two_norms ? "ln_mlp" : "post_attention_layernorm", layer.post_attention_layernorm,
               layer.post_attention_layernorm_bias);
  slots.matrix("mlp.dense_h_to_4h", inner, hidden, layer.up_proj, mlp, layer.up_bias);
  slots.matrix("mlp.dense_4h_to_h", hidden, inner, layer.down_proj, mlp, layer.down_bias);
}

}  // namespace

std::vector<TensorSlot> tensor_slots(ModelWeights& weights) {
  const ModelShape& shape = weights.shape;
  weights.layers.resize(static_cast<std::size_t>(shape.num_hidden_layers));
  // Llama and its kin are those with RMSNorm.
  const bool is_llama = shape.norm == NormKind::rms_norm;
  const std::string model = is_llama ? "model." : "transformer.";
  kernels::WeightView no_bias;
  std::vector<TensorSlot> list;
  SlotList slots(shape, list);
  slots.set_prefix(model);
  slots.matrix(is_llama ? "embed_tokens" : "word_embeddings", shape.vocab_size, shape.hidden_size, weights.embed_tokens,
               Bias::none, no_bias);
  if (shape.embedding_norm)
    slots.norm("word_embeddings_layernorm", weights.word_embeddings_layernorm, weights.word_embeddings_layernorm_bias);
  for (std::size_t layer = 0; layer < weights.layers.size(); ++layer) {
    slots.set_prefix(model + (is_llama ? "layers." : "h.") + std::to_string(layer) + ".");
    (is_llama ? add_llama_layer : add_bloom_layer)(slots, shape, weights.layers[layer]);
  }
  slots.set_prefix(model);
  slots.norm(is_llama ? "norm" : "ln_f", weights.norm, weights.norm_bias);
  slots.set_prefix("");
  if (!shape.tie_word_embeddings)
    slots.matrix("lm_head", shape.vocab_size, shape.hidden_size, weights.lm_head, Bias::none, no_bias);
  return list;
}

void tie_head(ModelWeights& weights) {
  if (weights.shape.tie_word_embeddings) weights.lm_head = weights.embed_tokens;
}

}  // namespace dculab::engine
