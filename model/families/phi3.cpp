// Phi-3 and Phi-4: Llama with Q, K and V in one tensor, gate and up in another, and long contexts by LongRoPE.
// Source: transformers, models/phi3/{configuration,modeling}_phi3.py.
#include "model/families/config_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {
namespace {

constexpr TensorNames phi3_tensor_names() {
  TensorNames names = llama_tensor_names();
  names.qkv = QkvLayout::stacked;
  names.stacked_gate_up = true;
  names.set(WeightSlot::qkv_proj, "self_attn.qkv_proj");
  names.set(WeightSlot::up_proj, "mlp.gate_up_proj");
  return names;
}

constexpr TensorNames kPhi3TensorNames = phi3_tensor_names();

}  // namespace

void read_phi3(const JsonFields& config, ModelShape& shape) {
  LayerKind layer = read_like_llama(config, shape, {.max_position_embeddings = 4096, .rms_norm_eps = 1e-5});
  layer.gqa().position = read_rope(config, layer.gqa().heads.head_dim);
  if (config.has("sliding_window"))
    layer.gqa().sliding_window = sliding_window(shape, read_size(config, {"sliding_window"}));
  set_layers(shape, read_num_layers(config), layer);
  shape.tensor_names = &kPhi3TensorNames;
}

}  // namespace dculab
