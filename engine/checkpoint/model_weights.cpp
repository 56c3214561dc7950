#include "engine/checkpoint/model_weights.hpp"

namespace dculab::engine {
namespace {

enum class Bias : std::uint8_t { none, one };

Bias bias_if(bool has_bias) { return has_bias ? Bias::one : Bias::none; }

// Lists the tensors of a module under its prefix.
class SlotList {
 public:
  SlotList(const ModelShape& shape, std::vector<TensorSlot>& slots) : shape_(shape), slots_(slots) {}

  void set_prefix(std::string prefix, int layer = 0) {
    prefix_ = std::move(prefix);
    layer_ = layer;
  }

  void norm(WeightSlot slot, const char* name, kernels::WeightView& weight, kernels::WeightView& bias) {
    const bool layer_norm = shape_.norm == NormKind::layer_norm;
    const int width = shape_.hidden_size;
    add({prefix_ + name + ".weight", width, 0, &weight, SlotKind::norm, {}, layer_norm, slot, layer_});
    if (layer_norm) add({prefix_ + name + ".bias", width, 0, &bias, SlotKind::bias, {}, true, slot, layer_});
  }

  void matrix(WeightSlot slot, const char* name, int rows, int columns, kernels::WeightView& weight, Bias has_bias,
              kernels::WeightView& bias, RowPick pick = {}) {
    add({prefix_ + name + ".weight", rows, columns, &weight, SlotKind::matrix, pick, false, slot, layer_});
    if (has_bias == Bias::one)
      add({prefix_ + name + ".bias", rows, 0, &bias, SlotKind::bias, pick, true, slot, layer_});
  }

 private:
  void add(TensorSlot slot) { slots_.push_back(std::move(slot)); }

  const ModelShape& shape_;
  std::vector<TensorSlot>& slots_;
  std::string prefix_;
  int layer_ = 0;
};

// Llama, Mistral, Qwen2.
void add_llama_layer(SlotList& slots, int hidden, const LayerKind& kind, LayerWeights& layer) {
  const Heads& heads = kind.attention.heads;
  const int inner = kind.mlp.intermediate_size;
  const Bias qkv = bias_if(kind.attention.qkv_bias), mlp = bias_if(kind.mlp.bias);
  slots.norm(WeightSlot::attention_norm, "input_layernorm", layer.input_layernorm, layer.input_layernorm_bias);
  slots.matrix(WeightSlot::qkv_proj, "self_attn.q_proj", heads.query_width(), hidden, layer.q_proj, qkv, layer.q_bias);
  slots.matrix(WeightSlot::qkv_proj, "self_attn.k_proj", heads.kv_width(), hidden, layer.k_proj, qkv, layer.k_bias);
  slots.matrix(WeightSlot::qkv_proj, "self_attn.v_proj", heads.kv_width(), hidden, layer.v_proj, qkv, layer.v_bias);
  slots.matrix(WeightSlot::o_proj, "self_attn.o_proj", hidden, heads.query_width(), layer.o_proj,
               bias_if(kind.attention.output_bias), layer.o_bias);
  slots.norm(WeightSlot::mlp_norm, "post_attention_layernorm", layer.post_attention_layernorm,
             layer.post_attention_layernorm_bias);
  if (kind.mlp.kind == MlpKind::gated)
    slots.matrix(WeightSlot::up_proj, "mlp.gate_proj", inner, hidden, layer.gate_proj, mlp, layer.gate_bias);
  slots.matrix(WeightSlot::up_proj, "mlp.up_proj", inner, hidden, layer.up_proj, mlp, layer.up_bias);
  slots.matrix(WeightSlot::down_proj, "mlp.down_proj", hidden, inner, layer.down_proj, mlp, layer.down_bias);
}

// BLOOM and Falcon. Q, K and V lie in one tensor; BLOOM's [heads, 3, head_dim] is the fused form of a group of one.
void add_bloom_layer(SlotList& slots, int hidden, const LayerKind& kind, LayerWeights& layer) {
  const Heads& heads = kind.attention.heads;
  const int inner = kind.mlp.intermediate_size, head = heads.head_dim;
  const int query = heads.group_size() * head, group = query + 2 * head;
  const int fused = heads.num_key_value_heads * group;
  const Bias qkv = bias_if(kind.attention.qkv_bias), mlp = bias_if(kind.mlp.bias);
  const bool two_norms = kind.block == BlockKind::parallel_two_norms;
  const char* const name = "self_attention.query_key_value";
  slots.norm(WeightSlot::attention_norm, two_norms ? "ln_attn" : "input_layernorm", layer.input_layernorm,
             layer.input_layernorm_bias);
  slots.matrix(WeightSlot::qkv_proj, name, heads.query_width(), hidden, layer.q_proj, qkv, layer.q_bias,
               {fused, 0, query, group});
  slots.matrix(WeightSlot::qkv_proj, name, heads.kv_width(), hidden, layer.k_proj, qkv, layer.k_bias,
               {fused, query, head, group});
  slots.matrix(WeightSlot::qkv_proj, name, heads.kv_width(), hidden, layer.v_proj, qkv, layer.v_bias,
               {fused, query + head, head, group});
  slots.matrix(WeightSlot::o_proj, "self_attention.dense", hidden, heads.query_width(), layer.o_proj,
               bias_if(kind.attention.output_bias), layer.o_bias);
  if (kind.block != BlockKind::parallel)
    slots.norm(WeightSlot::mlp_norm, two_norms ? "ln_mlp" : "post_attention_layernorm", layer.post_attention_layernorm,
               layer.post_attention_layernorm_bias);
  slots.matrix(WeightSlot::up_proj, "mlp.dense_h_to_4h", inner, hidden, layer.up_proj, mlp, layer.up_bias);
  slots.matrix(WeightSlot::down_proj, "mlp.dense_4h_to_h", hidden, inner, layer.down_proj, mlp, layer.down_bias);
}

using kernels::WeightView;

[[nodiscard]] SlotWeights vector_of(const WeightView& weight, const WeightView& bias) {
  if (weight.data == nullptr) return {};
  return {{weight}, {bias}, 1, 0};
}

[[nodiscard]] SlotWeights matrix_of(const WeightView& weight, const WeightView& bias, int columns) {
  return {{weight}, {bias}, 1, columns};
}

[[nodiscard]] SlotWeights layer_weights_in(int hidden, const LayerKind& kind, const LayerWeights& layer,
                                           WeightSlot slot) {
  switch (slot) {
    case WeightSlot::attention_norm:
      return vector_of(layer.input_layernorm, layer.input_layernorm_bias);
    case WeightSlot::qkv_proj:
      return {{layer.q_proj, layer.k_proj, layer.v_proj}, {layer.q_bias, layer.k_bias, layer.v_bias}, 3, hidden};
    case WeightSlot::o_proj:
      return matrix_of(layer.o_proj, layer.o_bias, kind.attention.heads.query_width());
    case WeightSlot::mlp_norm:
      return vector_of(layer.post_attention_layernorm, layer.post_attention_layernorm_bias);
    case WeightSlot::up_proj:
      if (kind.mlp.kind == MlpKind::plain) return matrix_of(layer.up_proj, layer.up_bias, hidden);
      return {{layer.gate_proj, layer.up_proj}, {layer.gate_bias, layer.up_bias}, 2, hidden};
    case WeightSlot::down_proj:
      return matrix_of(layer.down_proj, layer.down_bias, kind.mlp.intermediate_size);
    default:
      return {};
  }
}

}  // namespace

SlotWeights weights_in(const ModelWeights& weights, WeightSlot slot, int layer) {
  const int hidden = weights.shape.hidden_size;
  switch (slot) {
    case WeightSlot::embed_tokens:
      return matrix_of(weights.embed_tokens, {}, hidden);
    case WeightSlot::embed_norm:
      return vector_of(weights.word_embeddings_layernorm, weights.word_embeddings_layernorm_bias);
    case WeightSlot::final_norm:
      return vector_of(weights.norm, weights.norm_bias);
    case WeightSlot::lm_head:
      return matrix_of(weights.lm_head, {}, hidden);
    default:
      return layer_weights_in(hidden, weights.shape.layer(layer), weights.layers[static_cast<std::size_t>(layer)],
                              slot);
  }
}

std::vector<TensorSlot> tensor_slots(ModelWeights& weights) {
  const ModelShape& shape = weights.shape;
  weights.layers.resize(shape.layers.size());
  // Llama and its kin are those with RMSNorm.
  const bool is_llama = shape.norm == NormKind::rms_norm;
  const std::string model = is_llama ? "model." : "transformer.";
  kernels::WeightView no_bias;
  std::vector<TensorSlot> list;
  SlotList slots(shape, list);
  slots.set_prefix(model);
  slots.matrix(WeightSlot::embed_tokens, is_llama ? "embed_tokens" : "word_embeddings", shape.vocab_size,
               shape.hidden_size, weights.embed_tokens, Bias::none, no_bias);
  if (shape.embedding_norm)
    slots.norm(WeightSlot::embed_norm, "word_embeddings_layernorm", weights.word_embeddings_layernorm,
               weights.word_embeddings_layernorm_bias);
  for (std::size_t layer = 0; layer < weights.layers.size(); ++layer) {
    slots.set_prefix(model + (is_llama ? "layers." : "h.") + std::to_string(layer) + ".", static_cast<int>(layer));
    (is_llama ? add_llama_layer : add_bloom_layer)(slots, shape.hidden_size, shape.layer(static_cast<int>(layer)),
                                                   weights.layers[layer]);
  }
  slots.set_prefix(model);
  slots.norm(WeightSlot::final_norm, is_llama ? "norm" : "ln_f", weights.norm, weights.norm_bias);
  slots.set_prefix("");
  if (!shape.tie_word_embeddings)
    slots.matrix(WeightSlot::lm_head, "lm_head", shape.vocab_size, shape.hidden_size, weights.lm_head, Bias::none,
                 no_bias);
  return list;
}

void tie_head(ModelWeights& weights) {
  if (weights.shape.tie_word_embeddings) weights.lm_head = weights.embed_tokens;
}

}  // namespace dculab::engine
