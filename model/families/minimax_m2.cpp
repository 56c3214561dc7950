// MiniMax M2: grouped-query attention with norms of all query heads and all KV heads at once, and experts in every
// layer, chosen by sigmoids.
// Source: transformers, models/minimax_m2/{configuration,modeling}_minimax_m2.py.
#include "model/families/config_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {

void read_minimax_m2(const JsonFields& config, ModelShape& shape) {
  LayerKind layer =
      read_like_llama(config, shape, {.max_position_embeddings = 196608, .num_key_value_heads = 8, .head_dim = 128});
  Gqa& attention = layer.gqa();
  attention.position = read_rope(config, attention.heads.head_dim, 5e6);
  if (config.has("rotary_dim")) attention.position.rotary_dim = read_size(config, {"rotary_dim"});
  if (config.flag("use_qk_norm", true)) attention.qk_norm = QkNorm::whole;
  layer.experts = Experts{.num_experts = read_size(config, {"num_local_experts"}, 256),
                          .num_experts_per_tok = read_size(config, {"num_experts_per_tok"}, 8),
                          .intermediate_size = layer.mlp.intermediate_size,
                          .activation = layer.mlp.activation,
                          .scoring = ExpertScoring::sigmoid,
                          .correction_bias = config.flag("use_routing_bias", true)};
  layer.mlp.intermediate_size = 0;
  set_layers(shape, read_num_layers(config), layer);
  shape.tensor_names = nullptr;
}

}  // namespace dculab
