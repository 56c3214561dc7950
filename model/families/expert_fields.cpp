#include "model/families/expert_fields.hpp"

#include <algorithm>
#include <string>

#include "fields/printable_text.hpp"
#include "model/families/config_fields.hpp"

namespace dculab {
namespace {

// 1 where it is absent or null.
[[nodiscard]] int read_groups(const JsonFields& config, const char* key, int fallback) {
  return config.mentions(key) && !config.has(key) ? 1 : read_size(config, {key}, fallback);
}

[[nodiscard]] int shared_width(const JsonFields& config, int width, int fallback) {
  const int count = config.mentions("n_shared_experts") && !config.has("n_shared_experts")
                        ? 0
                        : config.integer("n_shared_experts", fallback);
  if (count < 0) config.refuse("n_shared_experts", "must not be negative");
  if (count > kLargestModelField / width) config.refuse("n_shared_experts", "is out of range");
  return count * width;
}

[[nodiscard]] ExpertScoring read_scoring(const JsonFields& config, ExpertScoring fallback) {
  if (!config.has("scoring_func")) return fallback;
  const std::string text = config.text("scoring_func", "");
  if (text == "softmax") return ExpertScoring::softmax;
  if (text == "sigmoid") return ExpertScoring::sigmoid;
  const bool is_v4 = fallback == ExpertScoring::sqrt_softplus;
  if (is_v4 && text == "sqrtsoftplus") return ExpertScoring::sqrt_softplus;
  config.refuse("scoring_func", is_v4 ? "must be softmax, sigmoid or sqrtsoftplus" : "must be softmax or sigmoid");
}

// Whether a token's experts are those of its best groups.
[[nodiscard]] bool chooses_in_groups(const JsonFields& config) {
  const std::string method = config.text("topk_method", "noaux_tc");
  if (method != "greedy" && method != "group_limited_greedy" && method != "noaux_tc")
    config.refuse("topk_method", in_quotes(method) + " is not supported (greedy, group_limited_greedy, noaux_tc)");
  return method != "greedy";
}

}  // namespace

LayerKind read_deepseek_experts(const JsonFields& config, LayerKind dense, const DeepseekExpertDefaults& defaults) {
  const int width = read_size(config, {"moe_intermediate_size"}, defaults.moe_intermediate_size);
  const ExpertScoring scoring = read_scoring(config, defaults.scoring);
  const bool in_groups = chooses_in_groups(config);
  dense.experts =
      Experts{.num_experts = read_size(config, {"n_routed_experts", "num_local_experts"}, defaults.n_routed_experts),
              .num_experts_per_tok = read_size(config, {"num_experts_per_tok"}, defaults.num_experts_per_tok),
              .intermediate_size = width,
              .activation = dense.mlp.activation,
              .scoring = scoring,
              .normalized = config.flag("norm_topk_prob", defaults.norm_topk_prob),
              .scaling = read_positive(config, "routed_scaling_factor", defaults.routed_scaling_factor),
              .num_groups = in_groups ? read_groups(config, "n_group", defaults.n_group) : 1,
              .groups_per_tok = in_groups ? read_groups(config, "topk_group", defaults.topk_group) : 1,
              .correction_bias = scoring != ExpertScoring::softmax};
  dense.mlp.intermediate_size = shared_width(config, width, defaults.n_shared_experts);
  return dense;
}

void set_deepseek_layers(const JsonFields& config, ModelShape& shape, const LayerKind& dense, const LayerKind& mixture,
                         const DeepseekExpertDefaults& defaults) {
  const int num_layers = read_num_layers(config), step = read_size(config, {"moe_layer_freq"}, 1);
  const int first = config.integer("first_k_dense_replace", defaults.first_k_dense_replace);
  if (first < 0) config.refuse("first_k_dense_replace", "must not be negative");
  if (first > num_layers)
    config.refuse("first_k_dense_replace",
                  "(" + std::to_string(first) + ") is more than the " + std::to_string(num_layers) + " layers");
  shape.kinds.clear(), shape.layers.clear();
  for (int layer = 0; layer < num_layers; ++layer)
    add_layer(shape, layer >= first && layer % step == 0 ? mixture : dense);
}

LayerKind read_qwen_experts(const JsonFields& config, LayerKind dense, const QwenExpertDefaults& defaults) {
  dense.experts =
      Experts{.num_experts = read_size(config, {"num_experts", "num_local_experts"}, defaults.num_experts),
              .num_experts_per_tok = read_size(config, {"num_experts_per_tok"}, defaults.num_experts_per_tok),
              .intermediate_size = read_size(config, {"moe_intermediate_size"}, defaults.moe_intermediate_size),
              .activation = dense.mlp.activation,
              .normalized = config.flag("norm_topk_prob", defaults.norm_topk_prob),
              .shared_gate = defaults.shared_expert_intermediate_size > 0};
  dense.mlp.intermediate_size = 0;
  if (defaults.shared_expert_intermediate_size > 0)
    dense.mlp.intermediate_size =
        read_size(config, {"shared_expert_intermediate_size"}, defaults.shared_expert_intermediate_size);
  return dense;
}

SparseLayers::SparseLayers(const JsonFields& config)
    : dense_(read_layer_numbers(config, "mlp_only_layers", read_num_layers(config))),
      step_(read_size(config, {"decoder_sparse_step"}, 1)) {}

bool SparseLayers::operator()(int index) const {
  return (index + 1) % step_ == 0 && std::ranges::count(dense_, index) == 0;
}

}  // namespace dculab
