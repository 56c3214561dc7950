// BLOOM: LayerNorm, also after the embedding, ALiBi, a plain MLP with GELU, biases everywhere, a tied head.
// Source: transformers, models/bloom/{configuration,modeling}_bloom.py.
#include "engine/checkpoint/config_fields.hpp"
#include "engine/checkpoint/families/families.hpp"

namespace dculab::engine {

void read_bloom(const JsonFields& config, ModelShape& shape) {
  if (config.flag("apply_residual_connection_post_layernorm", false))
    config.refuse("apply_residual_connection_post_layernorm", "is true, which is not supported");
  shape.hidden_size = read_size(config, {"hidden_size", "n_embed"});
  shape.num_hidden_layers = read_size(config, {"n_layer", "num_hidden_layers"});
  shape.num_attention_heads = read_size(config, {"n_head", "num_attention_heads"});
  shape.num_key_value_heads = shape.num_attention_heads;
  shape.head_dim = equal_heads(config, shape);
  shape.intermediate_size = classic_mlp_width(config, shape);
  if (config.has("n_inner") && config.integer("n_inner") != shape.intermediate_size)
    config.refuse("n_inner", "is not 4 * hidden_size, which BLOOM's MLP is");
  shape.vocab_size = read_size(config, {"vocab_size"});
  shape.max_position_embeddings = read_size(config, {"max_position_embeddings", "seq_length"}, 2048);
  shape.tie_word_embeddings = config.flag("tie_word_embeddings", true);
  shape.mlp = MlpKind::plain;
  shape.activation = ActivationKind::gelu_tanh;
  shape.norm = NormKind::layer_norm;
  shape.norm_eps = read_epsilon(config, "layer_norm_epsilon", 1e-5);
  shape.position = PositionKind::alibi;
  shape.embedding_norm = true;
  shape.qkv_bias = shape.attention_output_bias = shape.mlp_bias = true;
}

}  // namespace dculab::engine
