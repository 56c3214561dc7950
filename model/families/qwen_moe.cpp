// Qwen2 and Qwen3 with mixtures of experts. Qwen2's have a gated expert beside them that all tokens go through.
// Source: transformers, models/{qwen2_moe,qwen3_moe}/{configuration,modeling}_*.py.
#include <algorithm>

#include "model/families/config_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {
namespace {

constexpr TensorNames qwen_moe_tensor_names() {
  TensorNames names = llama_tensor_names();
  names.set(WeightSlot::qk_norm, "self_attn.q_norm", "self_attn.k_norm");
  names.set(WeightSlot::router, "mlp.gate");
  names.set(WeightSlot::expert_up_proj, "mlp.experts.*.gate_proj", "mlp.experts.*.up_proj");
  names.set(WeightSlot::expert_down_proj, "mlp.experts.*.down_proj");
  names.set(WeightSlot::shared_gate, "mlp.shared_expert_gate");
  names.shared_mlp = {"mlp.shared_expert.gate_proj", "mlp.shared_expert.up_proj", "mlp.shared_expert.down_proj"};
  return names;
}

constexpr TensorNames kQwenMoeTensorNames = qwen_moe_tensor_names();

// Every decoder_sparse_step-th layer has experts, but those of mlp_only_layers. transformers 5 writes num_experts of
// Qwen3 as num_local_experts.
void set_moe_layers(const JsonFields& config, ModelShape& shape, const LayerKind& dense, Experts experts,
                    int shared_width) {
  LayerKind mixture = dense;
  mixture.mlp.intermediate_size = shared_width;
  experts.activation = dense.mlp.activation;
  experts.normalized = config.flag("norm_topk_prob", false);
  mixture.experts = experts;
  const std::vector<int> dense_layers = config.integers("mlp_only_layers");
  const int step = read_size(config, {"decoder_sparse_step"}, 1), num_layers = read_num_layers(config);
  shape.kinds.clear(), shape.layers.clear();
  for (int layer = 0; layer < num_layers; ++layer)
    add_layer(shape, (layer + 1) % step != 0 || std::ranges::count(dense_layers, layer) > 0 ? dense : mixture);
  shape.tensor_names = &kQwenMoeTensorNames;
}

}  // namespace

// Windows are refused: of transformers' releases each gives them to other layers.
void read_qwen2_moe(const JsonFields& config, ModelShape& shape) {
  LayerKind dense = read_like_llama(config, shape, {.max_position_embeddings = 32768, .num_key_value_heads = 16});
  dense.attention.position = read_rope(config, dense.attention.heads.head_dim);
  dense.attention.qkv_bias = config.flag("qkv_bias", true);
  if (config.flag("use_sliding_window", false))
    config.refuse("use_sliding_window", "is not supported in a mixture of experts of Qwen2");
  set_moe_layers(config, shape, dense,
                 {.num_experts = read_size(config, {"num_experts"}, 60),
                  .num_experts_per_tok = read_size(config, {"num_experts_per_tok"}, 4),
                  .intermediate_size = read_size(config, {"moe_intermediate_size"}, 1408),
                  .shared_gate = true},
                 read_size(config, {"shared_expert_intermediate_size"}, 5632));
}

void read_qwen3_moe(const JsonFields& config, ModelShape& shape) {
  LayerKind dense = read_like_llama(config, shape, {.max_position_embeddings = 32768, .num_key_value_heads = 4});
  dense.attention.position = read_rope(config, dense.attention.heads.head_dim);
  dense.attention.qkv_bias = dense.attention.output_bias = config.flag("attention_bias", false);
  dense.attention.qk_norm = QkNorm::per_head;
  if (config.flag("use_sliding_window", false))
    dense.attention.sliding_window = sliding_window(shape, read_size(config, {"sliding_window"}, 4096));
  set_moe_layers(config, shape, dense,
                 {.num_experts = read_size(config, {"num_experts", "num_local_experts"}, 128),
                  .num_experts_per_tok = read_size(config, {"num_experts_per_tok"}, 8),
                  .intermediate_size = read_size(config, {"moe_intermediate_size"}, 768)},
                 0);
}

}  // namespace dculab
