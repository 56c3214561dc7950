// GPT-NeoX and Pythia: LayerNorm, MHA with a quarter of each head rotated, a plain MLP with GELU, biases of all
// matrices; attention and MLP side by side, each with its norm. Source: transformers,
// models/gpt_neox/{configuration,modeling}_gpt_neox.py.
#include "model/families/config_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {
namespace {

// Q, K and V of a head are neighbours: by_group with groups of one.
constexpr TensorNames neox_tensor_names() {
  TensorNames names{.model = "gpt_neox.", .layers = "layers.", .lm_head = "embed_out", .qkv = QkvLayout::by_group};
  names.set(WeightSlot::embed_tokens, "embed_in");
  names.set(WeightSlot::attention_norm, "input_layernorm");
  names.set(WeightSlot::qkv_proj, "attention.query_key_value");
  names.set(WeightSlot::o_proj, "attention.dense");
  names.set(WeightSlot::mlp_norm, "post_attention_layernorm");
  names.set(WeightSlot::up_proj, "mlp.dense_h_to_4h");
  names.set(WeightSlot::down_proj, "mlp.dense_4h_to_h");
  names.set(WeightSlot::final_norm, "final_layer_norm");
  return names;
}

constexpr TensorNames kNeoxTensorNames = neox_tensor_names();

// Older exports call the part of a head that is rotated rotary_pct, and the base rotary_emb_base.
[[nodiscard]] Position read_neox_position(const JsonFields& config, int head_dim) {
  Position position = read_rope(config, head_dim, read_positive(config, "rotary_emb_base", 10000));
  if (position.rotary_dim > 0) return position;
  const double share = read_positive(config, "rotary_pct", 0.25);
  position.rotary_dim = share <= 1 ? static_cast<int>(head_dim * share) : 0;
  if (position.rotary_dim < 2) config.refuse("rotary_pct", "must lie in (0, 1], and leave a head 2 values to rotate");
  return position;
}

}  // namespace

void read_gpt_neox(const JsonFields& config, ModelShape& shape) {
  const int hidden = shape.hidden_size = read_size(config, {"hidden_size"});
  const int num_heads = read_size(config, {"num_attention_heads"});
  LayerKind layer;
  layer.gqa().heads = {num_heads, num_heads, equal_heads(config, hidden, num_heads)};
  layer.gqa().position = read_neox_position(config, layer.gqa().heads.head_dim);
  layer.gqa().qkv_bias = layer.gqa().output_bias = config.flag("attention_bias", true);
  layer.mlp = {read_size(config, {"intermediate_size"}), MlpKind::plain, read_gelu(config, "hidden_act"), true};
  layer.block = config.flag("use_parallel_residual", true) ? BlockKind::parallel_two_norms : BlockKind::sequential;
  shape.vocab_size = read_size(config, {"vocab_size"});
  shape.max_position_embeddings = read_size(config, {"max_position_embeddings"}, 2048);
  shape.tie_word_embeddings = config.flag("tie_word_embeddings", false);
  shape.norm = NormKind::layer_norm;
  shape.norm_eps = read_epsilon(config, "layer_norm_eps", 1e-5);
  set_layers(shape, read_num_layers(config), layer);
  shape.tensor_names = &kNeoxTensorNames;
}

}  // namespace dculab
