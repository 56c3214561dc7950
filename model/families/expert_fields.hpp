// Fields of config.json that families with mixtures of experts share.
#pragma once

#include <vector>

#include "fields/json_fields.hpp"
#include "model/model_shape.hpp"

namespace dculab {

// What DeepSeek's configuration and those after it leave differently where config.json is silent.
struct DeepseekExpertDefaults {
  int n_routed_experts = 0, num_experts_per_tok = 0, n_shared_experts = 1, moe_intermediate_size = 0;
  int n_group = 1, topk_group = 1;
  int first_k_dense_replace = 0;
  double routed_scaling_factor = 1.0;
  bool norm_topk_prob = true;
  ExpertScoring scoring = ExpertScoring::sigmoid;
};

// `dense` with routed and shared experts in place of its MLP. Except with softmax scoring, a bias is added to the
// scores by which experts are chosen.
[[nodiscard]] LayerKind read_deepseek_experts(const JsonFields& config, LayerKind dense,
                                              const DeepseekExpertDefaults& defaults);

// The first `first_k_dense_replace` layers are dense, and of the others all but each moe_layer_freq-th.
void set_deepseek_layers(const JsonFields& config, ModelShape& shape, const LayerKind& dense, const LayerKind& mixture,
                         const DeepseekExpertDefaults& defaults);

// Routed experts of a configuration like Qwen3's: num_experts, num_experts_per_tok, moe_intermediate_size,
// norm_topk_prob; and the shared expert behind a gate where shared_expert_intermediate_size says so.
struct QwenExpertDefaults {
  int num_experts = 0, num_experts_per_tok = 0, moe_intermediate_size = 0;
  int shared_expert_intermediate_size = 0;  // 0 = none
  bool norm_topk_prob = false;
};
[[nodiscard]] LayerKind read_qwen_experts(const JsonFields& config, LayerKind dense,
                                          const QwenExpertDefaults& defaults);

// Whether layer `index` is a mixture: every decoder_sparse_step-th is, but those of mlp_only_layers.
class SparseLayers {
 public:
  explicit SparseLayers(const JsonFields& config);
  [[nodiscard]] bool operator()(int index) const;

 private:
  std::vector<int> dense_;
  int step_;
};

}  // namespace dculab
