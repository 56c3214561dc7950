// DeepSeek-V2 and V3: latent attention, and mixtures of many small experts beside shared ones. Kimi K2 is V3 with other
// sizes.
// Source: transformers, models/{deepseek_v2,deepseek_v3}/{configuration,modeling}_*.py.
#include <cmath>

#include "model/families/config_fields.hpp"
#include "model/families/expert_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {
namespace {

constexpr TensorNames deepseek_tensor_names(bool has_query_latent) {
  TensorNames names = llama_tensor_names();
  names.set(WeightSlot::qkv_a_proj, has_query_latent ? "self_attn.q_a_proj" : "self_attn.q_proj",
            "self_attn.kv_a_proj_with_mqa");
  names.set(WeightSlot::qk_norm, "self_attn.q_a_layernorm", "self_attn.kv_a_layernorm");
  names.set(WeightSlot::q_b_proj, "self_attn.q_b_proj");
  names.set(WeightSlot::kv_b_proj, "self_attn.kv_b_proj");
  names.set(WeightSlot::router, "mlp.gate", "mlp.gate.e_score_correction_bias");
  names.set(WeightSlot::expert_up_proj, "mlp.experts.*.gate_proj", "mlp.experts.*.up_proj");
  names.set(WeightSlot::expert_down_proj, "mlp.experts.*.down_proj");
  names.shared_mlp = {"mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj", "mlp.shared_experts.down_proj"};
  return names;
}

constexpr TensorNames kDeepseekTensorNames = deepseek_tensor_names(true);
constexpr TensorNames kDeepseekLiteTensorNames = deepseek_tensor_names(false);  // queries without a latent

// Scores are multiplied by the square of YaRN's magnitude, where mscale_all_dim gives one.
[[nodiscard]] double read_score_factor(const JsonFields& config) {
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const auto rope = config.object(key);
    if (!rope || rope->number("mscale_all_dim", 0) == 0) continue;
    const double factor = rope->number("factor", 1);
    if (factor <= 1) return 1;
    const double magnitude = 0.1 * read_positive(*rope, "mscale_all_dim", 1) * std::log(factor) + 1;
    return magnitude * magnitude;
  }
  return 1;
}

// Ranks differ from model to model, and configurations that were saved have them: none is assumed. Null of the
// queries': they are projected from the hidden state.
[[nodiscard]] int read_query_rank(const JsonFields& config) {
  constexpr const char* kKey = "q_lora_rank";
  if (!config.mentions(kKey)) config.refuse(kKey, "is missing; it is null where queries have no latent");
  return config.has(kKey) ? read_size(config, {kKey}) : 0;
}

[[nodiscard]] Mla read_latent_attention(const JsonFields& config, int num_attention_heads) {
  Mla attention{.num_attention_heads = num_attention_heads,
                .q_lora_rank = read_query_rank(config),
                .kv_lora_rank = read_size(config, {"kv_lora_rank"}),
                .qk_nope_head_dim = read_size(config, {"qk_nope_head_dim"}, 128),
                .qk_rope_head_dim = read_size(config, {"qk_rope_head_dim"}, 64),
                .v_head_dim = read_size(config, {"v_head_dim"}, 128),
                .bias = config.flag("attention_bias", false),
                .score_factor = read_score_factor(config)};
  attention.position = read_rope(config, attention.qk_rope_head_dim);
  if (config.flag("rope_interleave", true)) attention.position.pairs = RopePairs::neighbours;
  return attention;
}

// Layers that predict further tokens (num_nextn_predict_layers) are beyond num_hidden_layers and not read.
void read_deepseek(const JsonFields& config, ModelShape& shape, int max_position_embeddings,
                   const DeepseekExpertDefaults& experts) {
  // Their head_dim, where it is given, is that of the rotated part.
  LayerKind dense = read_like_llama(
      config, shape, {.max_position_embeddings = max_position_embeddings, .num_key_value_heads = 1, .head_dim = 1});
  dense.attention = read_latent_attention(config, dense.gqa().heads.num_attention_heads);
  dense.mlp.bias = config.flag("mlp_bias", false);
  const LayerKind mixture = read_deepseek_experts(config, dense, experts);
  set_deepseek_layers(config, shape, dense, mixture, experts);
  shape.tensor_names = mixture.mla()->q_lora_rank > 0 ? &kDeepseekTensorNames : &kDeepseekLiteTensorNames;
}

}  // namespace

void read_deepseek_v2(const JsonFields& config, ModelShape& shape) {
  read_deepseek(config, shape, 2048,
                {.n_routed_experts = 64,
                 .num_experts_per_tok = 6,
                 .n_shared_experts = 2,
                 .moe_intermediate_size = 1407,
                 .norm_topk_prob = false,
                 .scoring = ExpertScoring::softmax});
}

void read_deepseek_v3(const JsonFields& config, ModelShape& shape) {
  read_deepseek(config, shape, 4096,
                {.n_routed_experts = 256,
                 .num_experts_per_tok = 8,
                 .moe_intermediate_size = 2048,
                 .n_group = 8,
                 .topk_group = 4,
                 .first_k_dense_replace = 3,
                 .routed_scaling_factor = 2.5});
}

}  // namespace dculab
