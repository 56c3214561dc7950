// Falcon: LayerNorm, a plain MLP with GELU; attention and MLP side by side (7B, 40B) or one after the other (RW); RoPE,
// or ALiBi whose bias is divided by sqrt(head_dim) like the scores.
// Source: transformers, models/falcon/{configuration,modeling}_falcon.py.
#include <cmath>
#include <string>

#include "model/families/config_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {
namespace {

constexpr TensorNames falcon_tensor_names(bool two_norms) {
  TensorNames names{.model = "transformer.", .layers = "h.", .qkv = QkvLayout::by_group};
  names.set(WeightSlot::embed_tokens, "word_embeddings");
  names.set(WeightSlot::attention_norm, two_norms ? "ln_attn" : "input_layernorm");
  names.set(WeightSlot::qkv_proj, "self_attention.query_key_value");
  names.set(WeightSlot::o_proj, "self_attention.dense");
  names.set(WeightSlot::mlp_norm, two_norms ? "ln_mlp" : "post_attention_layernorm");
  names.set(WeightSlot::up_proj, "mlp.dense_h_to_4h");
  names.set(WeightSlot::down_proj, "mlp.dense_4h_to_h");
  names.set(WeightSlot::final_norm, "ln_f");
  return names;
}

constexpr TensorNames kFalconTensorNames = falcon_tensor_names(false), kFalconTwoNorms = falcon_tensor_names(true);

// "New decoder architecture": grouped KV heads, and a norm each for attention and MLP unless num_ln_in_parallel_attn
// says otherwise. Before it: one KV head, or as many as query heads.
void read_block(const JsonFields& config, LayerKind& layer) {
  const bool is_new = config.flag("new_decoder_architecture", false);
  const bool parallel = config.flag("parallel_attn", true);
  const int norms = config.integer("num_ln_in_parallel_attn", is_new ? 2 : 1);
  if (is_new && !parallel) config.refuse("parallel_attn", "is false, which new_decoder_architecture does not have");
  if (norms != 1 && norms != 2) config.refuse("num_ln_in_parallel_attn", "must be 1 or 2");
  if (norms == 2 && !is_new) config.refuse("num_ln_in_parallel_attn", "is 2, which needs new_decoder_architecture");
  layer.block = !parallel ? BlockKind::sequential : norms == 2 ? BlockKind::parallel_two_norms : BlockKind::parallel;
  Heads& heads = layer.gqa().heads;
  heads.num_key_value_heads = read_size(config, {"num_kv_heads", "n_head_kv"}, heads.num_attention_heads);
  if (!is_new) heads.num_key_value_heads = config.flag("multi_query", true) ? 1 : heads.num_attention_heads;
}

[[nodiscard]] Position read_position(const JsonFields& config, int head_dim) {
  if (config.flag("alibi", false))
    return {.kind = PositionKind::alibi, .alibi_scale = 1.0 / std::sqrt(static_cast<double>(head_dim))};
  return read_rope(config, head_dim);
}

}  // namespace

void read_falcon(const JsonFields& config, ModelShape& shape) {
  const int hidden = shape.hidden_size = read_size(config, {"hidden_size"});
  const int num_layers = read_num_layers(config, {"num_hidden_layers", "n_layer"});
  LayerKind layer;
  Heads& heads = layer.gqa().heads;
  heads.num_attention_heads = read_size(config, {"num_attention_heads", "n_head"});
  heads.head_dim = equal_heads(config, hidden, heads.num_attention_heads);
  read_block(config, layer);
  layer.mlp = {read_size(config, {"ffn_hidden_size"}, classic_mlp_width(config, hidden)), MlpKind::plain,
               read_gelu(config, "activation")};
  shape.vocab_size = read_size(config, {"vocab_size"});
  shape.max_position_embeddings = read_size(config, {"max_position_embeddings"}, 2048);
  shape.tie_word_embeddings = config.flag("tie_word_embeddings", true);
  shape.norm = NormKind::layer_norm;
  shape.norm_eps = read_epsilon(config, "layer_norm_epsilon", 1e-5);
  layer.gqa().qkv_bias = layer.gqa().output_bias = layer.mlp.bias = config.flag("bias", false);
  layer.gqa().position = read_position(config, heads.head_dim);
  set_layers(shape, num_layers, layer);
  shape.tensor_names = layer.block == BlockKind::parallel_two_norms ? &kFalconTwoNorms : &kFalconTensorNames;
}

}  // namespace dculab
