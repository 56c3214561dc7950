// BLOOM: LayerNorm, also after the embedding, ALiBi, a plain MLP with GELU, biases everywhere, a tied head.
// Source: transformers, models/bloom/{configuration,modeling}_bloom.py.
#include "engine/checkpoint/config_fields.hpp"
#include "engine/checkpoint/families/families.hpp"

namespace dculab::engine {

void read_bloom(const JsonFields& config, ModelShape& shape) {
  if (config.flag("apply_residual_connection_post_layernorm", false))
    config.refuse("apply_residual_connection_post_layernorm", "is true, which is not supported");
  const int hidden = shape.hidden_size = read_size(config, {"hidden_size", "n_embed"});
  const int num_layers = read_size(config, {"n_layer", "num_hidden_layers"});
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
  set_layers(shape, num_layers,
             {.attention = {.heads = {heads, heads, equal_heads(config, hidden, heads)},
                            .position = {.kind = PositionKind::alibi},
                            .qkv_bias = true,
                            .output_bias = true},
              .mlp = {inner, MlpKind::plain, ActivationKind::gelu_tanh, true}});
}

}  // namespace dculab::engine
