// Qwen3-Next and Qwen3.5: gated delta nets in most layers, and in the others attention whose output has a gate, with
// norms of each head of Q and K and a quarter of each head rotated. Norms multiply by 1 + weight.
// Source: transformers, models/{qwen3_next,qwen3_5,qwen3_5_moe}/{configuration,modeling}_*.py.
#include "model/families/config_fields.hpp"
#include "model/families/expert_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {
namespace {

constexpr std::string_view kLinear = "linear_attention";

struct QwenNextDefaults {
  int num_attention_heads = 16, num_key_value_heads = 2, linear_num_value_heads = 32;
};

// What both kinds of layers have, with attention.
[[nodiscard]] LayerKind read_qwen_attention(const JsonFields& config, ModelShape& shape,
                                            const QwenNextDefaults& defaults) {
  LayerKind full = read_like_llama(config, shape,
                                   {.max_position_embeddings = 32768,
                                    .intermediate_size = 5632,
                                    .num_attention_heads = defaults.num_attention_heads,
                                    .num_key_value_heads = defaults.num_key_value_heads,
                                    .head_dim = 256});
  shape.unit_offset_norms = true;
  Gqa& attention = full.gqa();
  attention.position = read_rope(config, attention.heads.head_dim);
  if (attention.position.rotary_dim == 0) attention.position.rotary_dim = attention.heads.head_dim / 4;
  attention.qkv_bias = attention.output_bias = config.flag("attention_bias", false);
  attention.qk_norm = QkNorm::per_head;
  attention.output_gate = config.flag("attn_output_gate", true);
  return full;
}

[[nodiscard]] GatedDeltaNet read_delta_net(const JsonFields& config, const QwenNextDefaults& defaults) {
  if (config.text("mamba_ssm_dtype", "float32") != "float32")
    config.refuse("mamba_ssm_dtype", "must be float32: states of another dtype are not modelled");
  return {.num_key_heads = read_size(config, {"linear_num_key_heads"}, 16),
          .num_value_heads = read_size(config, {"linear_num_value_heads"}, defaults.linear_num_value_heads),
          .key_head_dim = read_size(config, {"linear_key_head_dim"}, 128),
          .value_head_dim = read_size(config, {"linear_value_head_dim"}, 128),
          .conv_kernel = read_size(config, {"linear_conv_kernel_dim"}, 4)};
}

// layer_types, or every full_attention_interval-th layer with attention.
[[nodiscard]] std::vector<bool> read_attending_layers(const JsonFields& config) {
  const int num_layers = read_num_layers(config), interval = read_size(config, {"full_attention_interval"}, 4);
  std::vector<bool> attends;
  if (!config.has("layer_types")) {
    for (int layer = 0; layer < num_layers; ++layer) attends.push_back((layer + 1) % interval == 0);
    return attends;
  }
  for (const std::string& type : config.texts("layer_types")) {
    if (type != kFull && type != kLinear)
      config.refuse("layer_types", "must have full_attention and linear_attention alone");
    attends.push_back(type == kFull);
  }
  if (static_cast<int>(attends.size()) != num_layers)
    config.refuse("layer_types", "must have as many entries as there are layers");
  return attends;
}

// `mlps`: of a layer with attention, by its number.
template <class Mlps>
void set_qwen_next_layers(const JsonFields& config, ModelShape& shape, const QwenNextDefaults& defaults, Mlps&& mlps) {
  const GatedDeltaNet net = read_delta_net(config, defaults);
  const std::vector<bool> attends = read_attending_layers(config);
  shape.kinds.clear(), shape.layers.clear();
  for (std::size_t layer = 0; layer < attends.size(); ++layer) {
    LayerKind kind = mlps(static_cast<int>(layer));
    if (!attends[layer]) kind.attention = net;
    add_layer(shape, kind);
  }
  shape.tensor_names = nullptr;
}

}  // namespace

void read_qwen3_next(const JsonFields& config, ModelShape& shape) {
  const LayerKind dense = read_qwen_attention(config, shape, {});
  const LayerKind mixture = read_qwen_experts(config, dense,
                                              {.num_experts = 512,
                                               .num_experts_per_tok = 10,
                                               .moe_intermediate_size = 512,
                                               .shared_expert_intermediate_size = 512,
                                               .norm_topk_prob = true});
  const SparseLayers is_sparse(config);
  set_qwen_next_layers(config, shape, {}, [&](int layer) { return is_sparse(layer) ? mixture : dense; });
}

void read_qwen3_5(const JsonFields& config, ModelShape& shape) {
  constexpr QwenNextDefaults kDefaults{.num_key_value_heads = 4};
  const LayerKind dense = read_qwen_attention(config, shape, kDefaults);
  set_qwen_next_layers(config, shape, kDefaults, [&](int) { return dense; });
}

void read_qwen3_5_moe(const JsonFields& config, ModelShape& shape) {
  const LayerKind mixture = read_qwen_experts(config, read_qwen_attention(config, shape, {}),
                                              {.num_experts = 256,
                                               .num_experts_per_tok = 8,
                                               .moe_intermediate_size = 512,
                                               .shared_expert_intermediate_size = 512,
                                               .norm_topk_prob = true});
  set_qwen_next_layers(config, shape, {}, [&](int) { return mixture; });
}

}  // namespace dculab
