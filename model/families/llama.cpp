// Llama: RMSNorm, RoPE, SwiGLU.
// Source: transformers, models/llama/{configuration,modeling}_llama.py.
#include "model/families/config_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {
namespace {

void read_llama_with(const JsonFields& config, ModelShape& shape, const LlamaDefaults& defaults) {
  LayerKind layer = read_like_llama(config, shape, defaults);
  layer.gqa().position = read_rope(config, layer.gqa().heads.head_dim);
  layer.gqa().qkv_bias = layer.gqa().output_bias = config.flag("attention_bias", false);
  layer.mlp.bias = config.flag("mlp_bias", false);
  set_layers(shape, read_num_layers(config, {"num_hidden_layers"}, defaults.num_hidden_layers), layer);
}

}  // namespace

void read_llama(const JsonFields& config, ModelShape& shape) { read_llama_with(config, shape, {}); }

void read_llama_inside(const JsonFields& config, ModelShape& shape) {
  read_llama_with(config, shape,
                  {.hidden_size = 4096,
                   .intermediate_size = 11008,
                   .num_hidden_layers = 32,
                   .num_attention_heads = 32,
                   .vocab_size = 32000});
}

}  // namespace dculab
