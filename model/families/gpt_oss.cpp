// gpt-oss: attention sinks, a window in every other layer, biases everywhere, and experts in every layer.
// Source: transformers, models/gpt_oss/{configuration,modeling}_gpt_oss.py.
#include "model/families/config_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {

// The weights of a token's experts are a softmax of their logits alone, which add up to 1.
void read_gpt_oss(const JsonFields& config, ModelShape& shape) {
  LayerKind full = read_like_llama(
      config, shape,
      {.max_position_embeddings = 131072, .num_key_value_heads = 8, .head_dim = 64, .rms_norm_eps = 1e-5});
  Gqa& attention = full.gqa();
  attention.position = read_rope(config, attention.heads.head_dim, 150000.0);
  attention.qkv_bias = attention.output_bias = config.flag("attention_bias", true);
  attention.sinks = true;
  full.experts = Experts{.num_experts = read_size(config, {"num_local_experts"}, 128),
                         .num_experts_per_tok = read_size(config, {"num_experts_per_tok", "experts_per_token"}, 4),
                         .intermediate_size = full.mlp.intermediate_size,
                         .activation = full.mlp.activation,
                         .bias = true};
  full.mlp.intermediate_size = 0;
  LayerKind windowed = full;
  windowed.gqa().sliding_window = sliding_window(shape, read_size(config, {"sliding_window"}, 128));
  const auto types =
      read_layer_types(config, read_num_layers(config), [](int index) { return index % 2 == 0 ? kSliding : kFull; });
  set_layers_by_type(shape, types, windowed, full);
  shape.tensor_names = nullptr;
}

}  // namespace dculab
