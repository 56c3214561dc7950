// OPT: LayerNorm, learned positions, MHA, a plain MLP with ReLU, biases of all matrices, a tied head.
// Source: transformers, models/opt/{configuration,modeling}_opt.py.
#include "fields/printable_text.hpp"
#include "model/families/config_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {
namespace {

constexpr int kUnusedPositions = 2;  // the first rows of the table, as in fairseq

// What OPT-350M alone has, and what no published model has.
void refuse_other_layouts(const JsonFields& config, int hidden_size) {
  if (config.integer("word_embed_proj_dim", hidden_size) != hidden_size)
    config.refuse("word_embed_proj_dim", "is not hidden_size, which is not supported: embeddings would be projected");
  if (!config.flag("do_layer_norm_before", true))
    config.refuse("do_layer_norm_before", "is false, which is not supported: norms would stand after each sum");
  if (config.flag("_remove_final_layer_norm", false))
    config.refuse("_remove_final_layer_norm", "is true, which is not supported");
  if (!config.flag("layer_norm_elementwise_affine", true))
    config.refuse("layer_norm_elementwise_affine", "is false, which is not supported");
}

[[nodiscard]] ActivationKind read_plain_activation(const JsonFields& config) {
  constexpr const char* kKey = "activation_function";
  const std::string activation = config.text(kKey, "relu");
  if (activation == "relu") return ActivationKind::relu;
  if (activation == "gelu") return ActivationKind::gelu;
  config.refuse(kKey, in_quotes(activation) + " is not supported (relu, gelu)");
}

}  // namespace

void read_opt(const JsonFields& config, ModelShape& shape) {
  const int hidden = shape.hidden_size = read_size(config, {"hidden_size"});
  refuse_other_layouts(config, hidden);
  const int num_heads = read_size(config, {"num_attention_heads"});
  LayerKind layer;
  layer.gqa().heads = {num_heads, num_heads, equal_heads(config, hidden, num_heads)};
  layer.gqa().position.kind = PositionKind::none;
  layer.mlp = {read_size(config, {"ffn_dim"}), MlpKind::plain, read_plain_activation(config)};
  layer.gqa().qkv_bias = layer.gqa().output_bias = layer.mlp.bias = config.flag("enable_bias", true);
  shape.vocab_size = read_size(config, {"vocab_size"});
  shape.max_position_embeddings = read_size(config, {"max_position_embeddings"}, 2048);
  shape.learned_positions = shape.max_position_embeddings + kUnusedPositions;
  shape.tie_word_embeddings = config.flag("tie_word_embeddings", true);
  shape.norm = NormKind::layer_norm;
  shape.norm_eps = 1e-5;
  set_layers(shape, read_num_layers(config), layer);
  shape.tensor_names = nullptr;
}

}  // namespace dculab
