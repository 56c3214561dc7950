// StarCoder 2: LayerNorm, RoPE, a plain MLP with GELU, biases of all matrices, and a sliding window in all layers.
// Source: transformers, models/starcoder2/{configuration,modeling}_starcoder2.py.
#include "model/families/config_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {
namespace {

constexpr TensorNames starcoder2_tensor_names() {
  TensorNames names = llama_tensor_names();
  names.set(WeightSlot::up_proj, "mlp.c_fc");
  names.set(WeightSlot::down_proj, "mlp.c_proj");
  return names;
}

constexpr TensorNames kStarcoder2TensorNames = starcoder2_tensor_names();

}  // namespace

void read_starcoder2(const JsonFields& config, ModelShape& shape) {
  LayerKind layer = read_like_llama(config, shape,
                                    {.max_position_embeddings = 4096,
                                     .num_key_value_heads = 2,
                                     .tie_word_embeddings = true,
                                     .activation = "gelu_pytorch_tanh"});
  layer.mlp.kind = MlpKind::plain;
  layer.mlp.activation = read_gelu(config, "hidden_act", "gelu_pytorch_tanh");
  layer.gqa().qkv_bias = layer.gqa().output_bias = layer.mlp.bias = config.flag("use_bias", true);
  layer.gqa().position = read_rope(config, layer.gqa().heads.head_dim);
  if (config.has("sliding_window"))
    layer.gqa().sliding_window = sliding_window(shape, read_size(config, {"sliding_window"}));
  shape.norm = NormKind::layer_norm;
  shape.norm_eps = read_epsilon(config, "norm_epsilon", 1e-5);
  set_layers(shape, read_num_layers(config), layer);
  shape.tensor_names = &kStarcoder2TensorNames;
}

}  // namespace dculab
