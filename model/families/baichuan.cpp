// Baichuan 1 and 2: Llama with MHA and one matrix for Q, K and V; RoPE in the 7B models, ALiBi in the 13B ones, which
// their hidden_size tells. Source: vLLM, model_executor/models/baichuan.py; the models' own code on the Hub,
// baichuan-inc/Baichuan2-{7B,13B}-Chat.
#include "model/families/config_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {

void read_baichuan(const JsonFields& config, ModelShape& shape) {
  constexpr int kHiddenSizeWithRope = 4096;
  const int context = read_size(config, {"max_position_embeddings", "model_max_length"}, 4096);
  LayerKind layer = read_like_llama(config, shape, {.max_position_embeddings = context});
  Gqa& attention = layer.gqa();
  if (attention.heads.num_key_value_heads != attention.heads.num_attention_heads)
    config.refuse("num_key_value_heads", "is not num_attention_heads: Baichuan has as many of both");
  if (shape.hidden_size == kHiddenSizeWithRope)
    attention.position = read_rope(config, attention.heads.head_dim);
  else
    attention.position.kind = PositionKind::alibi;
  set_layers(shape, read_num_layers(config), layer);
  shape.tensor_names = nullptr;
}

}  // namespace dculab
