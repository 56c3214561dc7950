// Llama 4: layers with RoPE see chunks of the context, and every fourth all of it, without positions; an expert for
// each token beside a shared one, in all layers or every second. Source: transformers,
// models/llama4/{configuration,modeling}_llama4.py.
#include <algorithm>

#include "model/families/config_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {
namespace {

// Of layers that are mixtures: moe_layers, or every interleave_moe_layer_step-th.
[[nodiscard]] std::vector<bool> read_mixtures(const JsonFields& config, int num_layers) {
  const std::vector<int> listed = read_layer_numbers(config, "moe_layers", num_layers);
  const int step = read_size(config, {"interleave_moe_layer_step"}, 1);
  std::vector<bool> mixtures;
  for (int layer = 0; layer < num_layers; ++layer)
    mixtures.push_back(config.has("moe_layers") ? std::ranges::count(listed, layer) > 0 : (layer + 1) % step == 0);
  return mixtures;
}

// Of layers that rotate: no_rope_layers has 1 for them; or all but every no_rope_layer_interval-th.
[[nodiscard]] std::vector<bool> read_rotating(const JsonFields& config, int num_layers) {
  const std::vector<int> listed = config.integers(kNoRopeLayers);
  const int interval = read_size(config, {"no_rope_layer_interval"}, 4);
  if (!listed.empty() && static_cast<int>(listed.size()) < num_layers)
    config.refuse(kNoRopeLayers, "must have as many entries as there are layers");
  std::vector<bool> rotating;
  for (int layer = 0; layer < num_layers; ++layer)
    rotating.push_back(listed.empty() ? (layer + 1) % interval != 0 : listed[static_cast<std::size_t>(layer)] != 0);
  return rotating;
}

}  // namespace

void read_llama4(const JsonFields& config, ModelShape& shape) {
  LayerKind dense = read_like_llama(config, shape,
                                    {.max_position_embeddings = 131072,
                                     .intermediate_size = 8192,
                                     .num_key_value_heads = 8,
                                     .head_dim = 128,
                                     .rms_norm_eps = 1e-5});
  const int expert_width = dense.mlp.intermediate_size;
  Gqa& attention = dense.gqa();
  attention.position = read_rope(config, attention.heads.head_dim, 500000.0);
  attention.position.pairs = RopePairs::neighbours;
  attention.qkv_bias = attention.output_bias = config.flag("attention_bias", false);
  dense.mlp.intermediate_size = read_size(config, {"intermediate_size_mlp"}, 16384);
  LayerKind mixture = dense;
  mixture.mlp.intermediate_size = expert_width;  // of the shared expert
  mixture.experts = Experts{.num_experts = read_size(config, {"num_local_experts"}, 16),
                            .num_experts_per_tok = read_size(config, {"num_experts_per_tok"}, 1),
                            .intermediate_size = expert_width,
                            .activation = dense.mlp.activation,
                            .scoring = ExpertScoring::sigmoid,
                            .normalized = false};
  const int num_layers = read_num_layers(config), chunk = read_size(config, {"attention_chunk_size"}, 8192);
  const std::vector<bool> mixtures = read_mixtures(config, num_layers), rotating = read_rotating(config, num_layers);
  shape.kinds.clear(), shape.layers.clear();
  for (std::size_t layer = 0; layer < mixtures.size(); ++layer) {
    LayerKind kind = mixtures[layer] ? mixture : dense;
    if (rotating[layer]) {
      kind.gqa().sliding_window = sliding_window(shape, chunk);
      kind.gqa().in_chunks = kind.gqa().sliding_window > 0;
      if (config.flag("use_qk_norm", true)) kind.gqa().qk_norm = QkNorm::unweighted;
    } else {
      kind.gqa().position = {.kind = PositionKind::none};
    }
    add_layer(shape, kind);
  }
  shape.tensor_names = nullptr;
}

}  // namespace dculab
