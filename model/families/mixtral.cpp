// Mixtral: Mistral with a mixture of experts in place of the MLP.
// Source: transformers, models/mixtral/{configuration,modeling}_mixtral.py.
#include "model/families/config_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {
namespace {

constexpr TensorNames mixtral_tensor_names() {
  TensorNames names = llama_tensor_names();
  names.set(WeightSlot::router, "block_sparse_moe.gate");
  names.set(WeightSlot::expert_up_proj, "block_sparse_moe.experts.*.w1", "block_sparse_moe.experts.*.w3");
  names.set(WeightSlot::expert_down_proj, "block_sparse_moe.experts.*.w2");
  return names;
}

constexpr TensorNames kMixtralTensorNames = mixtral_tensor_names();

}  // namespace

void read_mixtral(const JsonFields& config, ModelShape& shape) {
  LayerKind layer = read_like_llama(
      config, shape, {.max_position_embeddings = 32 * 4096, .num_key_value_heads = 8, .rms_norm_eps = 1e-5});
  layer.gqa().position = read_rope(config, layer.gqa().heads.head_dim);
  if (config.has("sliding_window"))
    layer.gqa().sliding_window = sliding_window(shape, read_size(config, {"sliding_window"}));
  layer.experts = Experts{.num_experts = read_size(config, {"num_local_experts"}, 8),
                          .num_experts_per_tok = read_size(config, {"num_experts_per_tok"}, 2),
                          .intermediate_size = layer.mlp.intermediate_size,
                          .activation = layer.mlp.activation};
  layer.mlp.intermediate_size = 0;
  set_layers(shape, read_num_layers(config), layer);
  shape.tensor_names = &kMixtralTensorNames;
}

}  // namespace dculab
