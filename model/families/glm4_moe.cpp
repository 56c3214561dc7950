// GLM-4.5 to 4.7: DeepSeek-V3's mixture of experts, behind a few dense layers, with grouped-query attention that
// rotates half of each head. Source: transformers, models/glm4_moe/{configuration,modeling}_glm4_moe.py.
#include "model/families/config_fields.hpp"
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
  LayerKind dense = read_like_llama(
      config, shape, {.max_position_embeddings = 131072, .num_key_value_heads = 8, .rms_norm_eps = 1e-5});
  Position& position = dense.attention.position;
  position = read_rope(config, dense.attention.heads.head_dim);
  if (position.rotary_dim == 0) position.rotary_dim = dense.attention.heads.head_dim / 2;  // partial_rotary_factor 0.5
  dense.attention.qkv_bias = config.flag("attention_bias", false);
  if (config.flag("use_qk_norm", false)) dense.attention.qk_norm = QkNorm::per_head;
  LayerKind mixture = dense;
  const int width = read_size(config, {"moe_intermediate_size"}, 1408);
  mixture.mlp.intermediate_size = width * read_size(config, {"n_shared_experts"}, 1);
  mixture.experts = Experts{.num_experts = read_size(config, {"n_routed_experts", "num_local_experts"}, 128),
                            .num_experts_per_tok = read_size(config, {"num_experts_per_tok"}, 8),
                            .intermediate_size = width,
                            .activation = dense.mlp.activation,
                            .scoring = ExpertScoring::sigmoid,
                            .normalized = config.flag("norm_topk_prob", true),
                            .scaling = read_positive(config, "routed_scaling_factor", 1.0),
                            .num_groups = read_size(config, {"n_group"}, 1),
                            .groups_per_tok = read_size(config, {"topk_group"}, 1),
                            .correction_bias = true};
  const int num_dense = config.integer("first_k_dense_replace", 1), num_layers = read_num_layers(config);
  shape.kinds.clear(), shape.layers.clear();
  for (int layer = 0; layer < num_layers; ++layer) add_layer(shape, layer < num_dense ? dense : mixture);
  shape.tensor_names = &kGlm4MoeTensorNames;
}

}  // namespace dculab
