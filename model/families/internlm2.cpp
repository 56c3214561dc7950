// InternLM 2: Llama whose Q, K and V are one matrix; biases of attention where `bias` says so.
// Source: the models' own code on the Hub, internlm/internlm2_5-7b-chat, configuration_internlm2.py and
// modeling_internlm2.py.
#include "model/families/config_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {
namespace {

constexpr TensorNames internlm2_tensor_names() {
  TensorNames names{.model = "model.", .layers = "layers.", .lm_head = "output", .qkv = QkvLayout::by_group};
  names.set(WeightSlot::embed_tokens, "tok_embeddings");
  names.set(WeightSlot::attention_norm, "attention_norm");
  names.set(WeightSlot::qkv_proj, "attention.wqkv");
  names.set(WeightSlot::o_proj, "attention.wo");
  names.set(WeightSlot::mlp_norm, "ffn_norm");
  names.set(WeightSlot::up_proj, "feed_forward.w1", "feed_forward.w3");
  names.set(WeightSlot::down_proj, "feed_forward.w2");
  names.set(WeightSlot::final_norm, "norm");
  return names;
}

constexpr TensorNames kInternlm2TensorNames = internlm2_tensor_names();

}  // namespace

void read_internlm2(const JsonFields& config, ModelShape& shape) {
  LayerKind layer = read_like_llama(config, shape, {.max_position_embeddings = 2048});
  layer.gqa().position = read_rope(config, layer.gqa().heads.head_dim);
  layer.gqa().qkv_bias = layer.gqa().output_bias = config.flag("bias", true);
  set_layers(shape, read_num_layers(config), layer);
  shape.tensor_names = &kInternlm2TensorNames;
}

}  // namespace dculab
