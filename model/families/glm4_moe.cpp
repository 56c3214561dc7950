// GLM-4.5 to 4.7: DeepSeek-V3's mixture of experts, behind a few dense layers, with grouped-query attention that
// rotates half of each head. Source: transformers, models/glm4_moe/{configuration,modeling}_glm4_moe.py.
#include "model/families/config_fields.hpp"
#include "model/families/expert_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {
namespace {

constexpr TensorNames glm4_moe_tensor_names() {
  TensorNames names = llama_tensor_names();
  names.set(WeightSlot::qk_norm, "self_attn.q_norm", "self_attn.k_norm");
  names.set(WeightSlot::router, "mlp.gate", "mlp.gate.e_score_correction_bias");
  names.set(WeightSlot::expert_up_proj, "mlp.experts.*.gate_proj", "mlp.experts.*.up_proj");
  names.set(WeightSlot::expert_down_proj, "mlp.experts.*.down_proj");
  names.shared_mlp = {"mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj", "mlp.shared_experts.down_proj"};
  return names;
}

constexpr TensorNames kGlm4MoeTensorNames = glm4_moe_tensor_names();

}  // namespace

// Layers that predict further tokens (num_nextn_predict_layers) are beyond num_hidden_layers and not read.
void read_glm4_moe(const JsonFields& config, ModelShape& shape) {
  constexpr DeepseekExpertDefaults kExperts{
      .n_routed_experts = 128, .num_experts_per_tok = 8, .moe_intermediate_size = 1408, .first_k_dense_replace = 1};
  LayerKind dense = read_like_llama(
      config, shape, {.max_position_embeddings = 131072, .num_key_value_heads = 8, .rms_norm_eps = 1e-5});
  Position& position = dense.gqa().position;
  position = read_rope(config, dense.gqa().heads.head_dim);
  if (position.rotary_dim == 0) position.rotary_dim = dense.gqa().heads.head_dim / 2;  // partial_rotary_factor 0.5
  dense.gqa().qkv_bias = config.flag("attention_bias", false);
  if (config.flag("use_qk_norm", false)) dense.gqa().qk_norm = QkNorm::per_head;
  set_deepseek_layers(config, shape, dense, read_deepseek_experts(config, dense, kExperts), kExperts);
  shape.tensor_names = &kGlm4MoeTensorNames;
}

}  // namespace dculab
