// Qwen2 and Qwen3 with mixtures of experts. Qwen2's have a gated expert beside them that all tokens go through.
// Source: transformers, models/{qwen2_moe,qwen3_moe}/{configuration,modeling}_*.py.
#include "model/families/config_fields.hpp"
#include "model/families/expert_fields.hpp"
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

void set_moe_layers(const JsonFields& config, ModelShape& shape, const LayerKind& dense,
                    const QwenExpertDefaults& defaults) {
  const LayerKind mixture = read_qwen_experts(config, dense, defaults);
  const SparseLayers is_sparse(config);
  const int num_layers = read_num_layers(config);
  shape.kinds.clear(), shape.layers.clear();
  for (int layer = 0; layer < num_layers; ++layer) add_layer(shape, is_sparse(layer) ? mixture : dense);
  shape.tensor_names = &kQwenMoeTensorNames;
}

}  // namespace

// Windows are refused: of transformers' releases each gives them to other layers.
void read_qwen2_moe(const JsonFields& config, ModelShape& shape) {
  LayerKind dense = read_like_llama(config, shape, {.max_position_embeddings = 32768, .num_key_value_heads = 16});
  dense.gqa().position = read_rope(config, dense.gqa().heads.head_dim);
  dense.gqa().qkv_bias = config.flag("qkv_bias", true);
  if (config.flag("use_sliding_window", false))
    config.refuse("use_sliding_window", "is not supported in a mixture of experts of Qwen2");
  set_moe_layers(config, shape, dense,
                 {.num_experts = 60,
                  .num_experts_per_tok = 4,
                  .moe_intermediate_size = 1408,
                  .shared_expert_intermediate_size = 5632});
}

void read_qwen3_moe(const JsonFields& config, ModelShape& shape) {
  LayerKind dense = read_like_llama(config, shape, {.max_position_embeddings = 32768, .num_key_value_heads = 4});
  dense.gqa().position = read_rope(config, dense.gqa().heads.head_dim);
  dense.gqa().qkv_bias = dense.gqa().output_bias = config.flag("attention_bias", false);
  dense.gqa().qk_norm = QkNorm::per_head;
  if (config.flag("use_sliding_window", false))
    dense.gqa().sliding_window = sliding_window(shape, read_size(config, {"sliding_window"}, 4096));
  set_moe_layers(config, shape, dense, {.num_experts = 128, .num_experts_per_tok = 8, .moe_intermediate_size = 768});
}

}  // namespace dculab
