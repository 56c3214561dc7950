// Qwen2: Llama with biases of Q, K and V. Qwen3: norms of each head of Q and K in their place. Both may give their last
// layers a sliding window.
// Source: transformers, models/{qwen2,qwen3}/{configuration,modeling}_*.py.
#include "model/families/config_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {
namespace {

constexpr int kDefaultMaxWindowLayers = 28;

// Newer exports list the layers' types, older ones say from which on they have a window.
void set_qwen_layers(const JsonFields& config, ModelShape& shape, const LayerKind& full) {
  const bool slides =
      config.flag("use_sliding_window", false) && (config.has("sliding_window") || !config.mentions("sliding_window"));
  const int first = config.integer("max_window_layers", kDefaultMaxWindowLayers);
  const auto types = read_layer_types(config, read_num_layers(config),
                                      [=](int index) { return slides && index >= first ? kSliding : kFull; });
  LayerKind windowed = full;
  if (slides) windowed.gqa().sliding_window = sliding_window(shape, read_size(config, {"sliding_window"}, 4096));
  set_layers_by_type(shape, types, windowed, full);
}

constexpr TensorNames qwen3_tensor_names() {
  TensorNames names = llama_tensor_names();
  names.set(WeightSlot::qk_norm, "self_attn.q_norm", "self_attn.k_norm");
  return names;
}

constexpr TensorNames kQwen3TensorNames = qwen3_tensor_names();

}  // namespace

void read_qwen2(const JsonFields& config, ModelShape& shape) {
  LayerKind layer = read_like_llama(config, shape, {.max_position_embeddings = 32768, .num_key_value_heads = 32});
  layer.gqa().position = read_rope(config, layer.gqa().heads.head_dim);
  layer.gqa().qkv_bias = true;
  set_qwen_layers(config, shape, layer);
}

void read_qwen3(const JsonFields& config, ModelShape& shape) {
  LayerKind layer =
      read_like_llama(config, shape, {.max_position_embeddings = 32768, .num_key_value_heads = 32, .head_dim = 128});
  layer.gqa().qkv_bias = layer.gqa().output_bias = config.flag("attention_bias", false);
  layer.gqa().position = read_rope(config, layer.gqa().heads.head_dim);
  layer.gqa().qk_norm = QkNorm::per_head;
  set_qwen_layers(config, shape, layer);
  shape.tensor_names = &kQwen3TensorNames;
}

}  // namespace dculab
