// InternLM 2: Llama whose Q, K and V are one matrix; biases of attention where `bias` says so.
// Source: the models' own code on the Hub, internlm/internlm2_5-7b-chat, configuration_internlm2.py and
// modeling_internlm2.py.
#include "model/families/config_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {

void read_internlm2(const JsonFields& config, ModelShape& shape) {
  LayerKind layer = read_like_llama(config, shape, {.max_position_embeddings = 2048});
  layer.attention.position = read_rope(config, layer.attention.heads.head_dim);
  layer.attention.qkv_bias = layer.attention.output_bias = config.flag("bias", true);
  set_layers(shape, read_num_layers(config), layer);
  shape.tensor_names = nullptr;
}

}  // namespace dculab
