// Granite: Llama with four scalars, of embeddings, scores, both halves of a layer, and logits. What multiplies the
// halves and the logits goes with what is written anyway: it adds no bytes, and is not in the shape. Source:
// transformers, models/granite/{configuration,modeling}_granite.py.
#include "model/families/config_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {

void read_granite(const JsonFields& config, ModelShape& shape) {
  LayerKind layer = read_like_llama(config, shape, {});
  Gqa& attention = layer.gqa();
  attention.position = read_rope(config, attention.heads.head_dim);
  attention.qkv_bias = attention.output_bias = config.flag("attention_bias", false);
  layer.mlp.bias = config.flag("mlp_bias", false);
  const double score_scale = read_positive(config, "attention_multiplier", 1);
  attention.query_scalar = 1 / (score_scale * score_scale);
  shape.embedding_scale = read_positive(config, "embedding_multiplier", 1);
  for (const char* key : {"residual_multiplier", "logits_scaling"}) (void)read_positive(config, key, 1);
  set_layers(shape, read_num_layers(config), layer);
  shape.tensor_names = nullptr;
}

}  // namespace dculab
