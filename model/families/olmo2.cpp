// OLMo 2: norms after both halves of a layer, and of all of Q and all of K.
// Source: transformers, models/olmo2/{configuration,modeling}_olmo2.py.
#include "model/families/config_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {
namespace {

constexpr TensorNames olmo2_tensor_names() {
  TensorNames names = llama_tensor_names();
  names.set(WeightSlot::qk_norm, "self_attn.q_norm", "self_attn.k_norm");
  names.set(WeightSlot::attention_post_norm, "post_attention_layernorm");
  names.set(WeightSlot::mlp_post_norm, "post_feedforward_layernorm");
  return names;
}

constexpr TensorNames kOlmo2TensorNames = olmo2_tensor_names();

}  // namespace

void read_olmo2(const JsonFields& config, ModelShape& shape) {
  LayerKind layer = read_like_llama(config, shape, {.max_position_embeddings = 2048, .rms_norm_eps = 1e-5});
  layer.gqa().qkv_bias = layer.gqa().output_bias = config.flag("attention_bias", false);
  layer.gqa().position = read_rope(config, layer.gqa().heads.head_dim);
  layer.gqa().qk_norm = QkNorm::whole;
  layer.norms = NormPlacement::post;
  set_layers(shape, read_num_layers(config), layer);
  shape.tensor_names = &kOlmo2TensorNames;
}

}  // namespace dculab
