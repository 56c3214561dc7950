// Mistral: Llama with a sliding window.
// Source: transformers, models/mistral/{configuration,modeling}_mistral.py.
#include "model/families/config_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {
namespace {

// A window that is null does not slide; one that is left out is the default.
void read_mistral_with(const JsonFields& config, ModelShape& shape, const LlamaDefaults& defaults) {
  LayerKind layer = read_like_llama(config, shape, defaults);
  layer.gqa().position = read_rope(config, layer.gqa().heads.head_dim);
  if (config.has("sliding_window") || !config.mentions("sliding_window"))
    layer.gqa().sliding_window = sliding_window(shape, read_size(config, {"sliding_window"}, 4096));
  set_layers(shape, read_num_layers(config, {"num_hidden_layers"}, defaults.num_hidden_layers), layer);
}

}  // namespace

void read_mistral(const JsonFields& config, ModelShape& shape) {
  read_mistral_with(config, shape, {.max_position_embeddings = 32 * 4096, .num_key_value_heads = 8});
}

void read_mistral_inside(const JsonFields& config, ModelShape& shape) {
  read_mistral_with(config, shape,
                    {.max_position_embeddings = 32 * 4096,
                     .hidden_size = 4096,
                     .intermediate_size = 14336,
                     .num_hidden_layers = 32,
                     .num_attention_heads = 32,
                     .num_key_value_heads = 8,
                     .vocab_size = 32000});
}

}  // namespace dculab
