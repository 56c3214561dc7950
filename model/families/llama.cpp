// Llama: RMSNorm, RoPE, SwiGLU.
// Source: transformers, models/llama/{configuration,modeling}_llama.py.
#include "model/families/config_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {

void read_llama(const JsonFields& config, ModelShape& shape) {
  LayerKind layer = read_like_llama(config, shape, {});
  layer.attention.position = read_rope(config, layer.attention.heads.head_dim);
  layer.attention.qkv_bias = layer.attention.output_bias = config.flag("attention_bias", false);
  layer.mlp.bias = config.flag("mlp_bias", false);
  set_layers(shape, read_num_layers(config), layer);
}

}  // namespace dculab
