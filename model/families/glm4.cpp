// GLM-4 (0414): norms around both halves of a layer, half of each head rotated in pairs of neighbours, biases of Q, K
// and V, gate and up in one tensor. Source: transformers, models/glm4/{configuration,modeling}_glm4.py.
#include "model/families/config_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {
namespace {

constexpr TensorNames glm4_tensor_names() {
  TensorNames names = llama_tensor_names();
  names.stacked_gate_up = true;
  names.set(WeightSlot::up_proj, "mlp.gate_up_proj");
  names.set(WeightSlot::attention_post_norm, "post_self_attn_layernorm");
  names.set(WeightSlot::mlp_post_norm, "post_mlp_layernorm");
  return names;
}

constexpr TensorNames kGlm4TensorNames = glm4_tensor_names();

}  // namespace

void read_glm4(const JsonFields& config, ModelShape& shape) {
  LayerKind layer = read_like_llama(
      config, shape,
      {.max_position_embeddings = 131072, .num_key_value_heads = 2, .head_dim = 128, .rms_norm_eps = 1.5625e-7});
  layer.gqa().qkv_bias = config.flag("attention_bias", true);
  layer.norms = NormPlacement::sandwich;
  Position& position = layer.gqa().position;
  position = read_rope(config, layer.gqa().heads.head_dim);
  position.pairs = RopePairs::neighbours;
  if (position.rotary_dim == 0) position.rotary_dim = layer.gqa().heads.head_dim / 2;  // partial_rotary_factor 0.5
  set_layers(shape, read_num_layers(config), layer);
  shape.tensor_names = &kGlm4TensorNames;
}

}  // namespace dculab
