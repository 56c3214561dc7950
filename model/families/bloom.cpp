// BLOOM: LayerNorm, also after the embedding, ALiBi, a plain MLP with GELU, biases everywhere, a tied head.
// Source: transformers, models/bloom/{configuration,modeling}_bloom.py.
#include "model/families/config_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {
namespace {

// Q, K and V of a head are neighbours: by_group with groups of one.
constexpr TensorNames bloom_tensor_names() {
  TensorNames names{.model = "transformer.", .layers = "h.", .qkv = QkvLayout::by_group};
  names.set(WeightSlot::embed_tokens, "word_embeddings");
  names.set(WeightSlot::embed_norm, "word_embeddings_layernorm");
  names.set(WeightSlot::attention_norm, "input_layernorm");
  names.set(WeightSlot::qkv_proj, "self_attention.query_key_value");
  names.set(WeightSlot::o_proj, "self_attention.dense");
  names.set(WeightSlot::mlp_norm, "post_attention_layernorm");
  names.set(WeightSlot::up_proj, "mlp.dense_h_to_4h");
  names.set(WeightSlot::down_proj, "mlp.dense_4h_to_h");
  names.set(WeightSlot::final_norm, "ln_f");
  return names;
}

constexpr TensorNames kBloomTensorNames = bloom_tensor_names();

}  // namespace

void read_bloom(const JsonFields& config, ModelShape& shape) {
  if (config.flag("apply_residual_connection_post_layernorm", false))
    config.refuse("apply_residual_connection_post_layernorm", "is true, which is not supported");
  const int hidden = shape.hidden_size = read_size(config, {"hidden_size", "n_embed"});
  const int num_layers = read_num_layers(config, {"n_layer", "num_hidden_layers"});
  const int heads = read_size(config, {"n_head", "num_attention_heads"});
  const int inner = classic_mlp_width(config, hidden);
  if (config.has("n_inner") && config.integer("n_inner") != inner)
    config.refuse("n_inner", "is not 4 * hidden_size, which BLOOM's MLP is");
  shape.vocab_size = read_size(config, {"vocab_size"});
  shape.max_position_embeddings = read_size(config, {"max_position_embeddings", "seq_length"}, 2048);
  shape.tie_word_embeddings = config.flag("tie_word_embeddings", true);
  shape.norm = NormKind::layer_norm;
  shape.norm_eps = read_epsilon(config, "layer_norm_epsilon", 1e-5);
  shape.embedding_norm = true;
  shape.tensor_names = &kBloomTensorNames;
  set_layers(shape, num_layers,
             {.attention = Gqa{.heads = {heads, heads, equal_heads(config, hidden, heads)},
                               .position = {.kind = PositionKind::alibi},
                               .qkv_bias = true,
                               .output_bias = true},
              .mlp = {inner, MlpKind::plain, ActivationKind::gelu_tanh, true}});
}

}  // namespace dculab
