// Gemma 2 and 3: norms around both halves of a layer, gains of 1 + weight, GeGLU, scaled embeddings, and windows in
// most layers. Gemma 2 caps scores and logits; Gemma 3 norms Q and K, and rotates windowed layers by other frequencies.
// Source: transformers, models/{gemma2,gemma3}/{configuration,modeling}_*.py.
#include <cmath>

#include "model/families/config_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {
namespace {

constexpr TensorNames gemma_tensor_names() {
  TensorNames names = llama_tensor_names();
  names.set(WeightSlot::qk_norm, "self_attn.q_norm", "self_attn.k_norm");
  names.set(WeightSlot::attention_post_norm, "post_attention_layernorm");
  names.set(WeightSlot::mlp_norm, "pre_feedforward_layernorm");
  names.set(WeightSlot::mlp_post_norm, "post_feedforward_layernorm");
  return names;
}

constexpr TensorNames kGemmaTensorNames = gemma_tensor_names();

// What the configuration classes of the two leave differently where config.json is silent.
struct GemmaDefaults {
  int max_position_embeddings = 0, vocab_size = 0;
  double logit_soft_cap = 0, final_logit_soft_cap = 0;
};

// A cap of null is none.
double read_soft_cap(const JsonFields& config, const char* key, double fallback) {
  if (config.mentions(key) && !config.has(key)) return 0;
  return config.has(key) ? read_positive(config, key, fallback) : fallback;
}

// What both have; positions and windows are the caller's.
LayerKind read_gemma(const JsonFields& config, ModelShape& shape, const GemmaDefaults& defaults) {
  if (config.flag("use_bidirectional_attention", false))
    config.refuse("use_bidirectional_attention", "is true, which is not supported: tokens would see those after them");
  LayerKind layer = read_like_llama(config, shape,
                                    {.max_position_embeddings = defaults.max_position_embeddings,
                                     .num_attention_heads = 8,
                                     .num_key_value_heads = 4,
                                     .head_dim = 256,
                                     .tie_word_embeddings = true,
                                     .activation = "gelu_pytorch_tanh",
                                     .activation_key = "hidden_activation",
                                     .vocab_size = defaults.vocab_size});
  layer.norms = NormPlacement::sandwich;
  layer.gqa().query_scalar = read_size(config, {"query_pre_attn_scalar"}, 256);
  layer.gqa().qkv_bias = layer.gqa().output_bias = config.flag("attention_bias", false);
  layer.gqa().logit_soft_cap = read_soft_cap(config, "attn_logit_softcapping", defaults.logit_soft_cap);
  shape.final_logit_soft_cap = read_soft_cap(config, "final_logit_softcapping", defaults.final_logit_soft_cap);
  shape.unit_offset_norms = true;
  shape.embedding_scale = std::sqrt(static_cast<double>(shape.hidden_size));
  shape.tensor_names = &kGemmaTensorNames;
  return layer;
}

}  // namespace

// Every other layer has a window, the first of them.
void read_gemma2(const JsonFields& config, ModelShape& shape) {
  LayerKind full = read_gemma(config, shape, {8192, 256000, 50, 30});
  full.gqa().position = read_rope(config, full.gqa().heads.head_dim);
  LayerKind windowed = full;
  windowed.gqa().sliding_window = sliding_window(shape, read_size(config, {"sliding_window"}, 4096));
  const auto types =
      read_layer_types(config, read_num_layers(config), [](int index) { return index % 2 == 0 ? kSliding : kFull; });
  set_layers_by_type(shape, types, windowed, full);
}

// Five layers with a window, then one without. Windowed layers have rope_local_base_freq and no scaling.
void read_gemma3_text(const JsonFields& config, ModelShape& shape) {
  constexpr double kTheta = 1e6, kLocalTheta = 1e4;
  LayerKind full = read_gemma(config, shape, {131072, 262208});
  full.gqa().qk_norm = QkNorm::per_head;
  LayerKind windowed = full;
  const int head_dim = full.gqa().heads.head_dim;
  if (config.has("rope_parameters")) {
    full.gqa().position = read_rope_of(config, kFull, head_dim, kTheta);
    windowed.gqa().position = read_rope_of(config, kSliding, head_dim, kLocalTheta);
  } else {
    full.gqa().position = read_rope(config, head_dim, kTheta);
    windowed.gqa().position = {.rope_theta = read_positive(config, "rope_local_base_freq", kLocalTheta)};
  }
  windowed.gqa().sliding_window = sliding_window(shape, read_size(config, {"sliding_window"}, 4096));
  const int pattern = read_size(config, {"sliding_window_pattern", "_sliding_window_pattern"}, 6);
  const auto types = read_layer_types(config, read_num_layers(config),
                                      [pattern](int index) { return (index + 1) % pattern != 0 ? kSliding : kFull; });
  set_layers_by_type(shape, types, windowed, full);
}

}  // namespace dculab
