// DeepSeek-V4: attention over a window and compressed entries, of two ratios by turns, the smaller with an indexer; a
// residual of several streams; experts in all layers, which in the first are chosen by a table of token ids, and may be
// stored in FP4 beside other matrices in FP8. Weights of streams, norms and entries are F32 in the checkpoint; they are
// counted in the model's dtype. Source: transformers, models/deepseek_v4/{configuration,modeling}_deepseek_v4.py.
#include <algorithm>

#include "fields/printable_text.hpp"
#include "model/families/config_fields.hpp"
#include "model/families/expert_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {
namespace {

constexpr std::string_view kSparse = "compressed_sparse_attention", kHeavy = "heavily_compressed_attention";

// Tokens of an entry in layers of the two types.
struct CompressRates {
  int sparse = 4, heavy = 128;
};

// compress_rates, over which the older keys of single rates go.
[[nodiscard]] CompressRates read_compress_rates(const JsonFields& config) {
  CompressRates rates;
  const auto nested = config.object("compress_rates");
  rates.sparse = nested ? read_size(*nested, {kSparse.data()}, rates.sparse) : rates.sparse;
  rates.heavy = nested ? read_size(*nested, {kHeavy.data()}, rates.heavy) : rates.heavy;
  rates.sparse = read_size(config, {"compress_rate_csa"}, rates.sparse);
  rates.heavy = read_size(config, {"compress_rate_hca"}, rates.heavy);
  return rates;
}

// The ratio of each layer, 0 where there is a window alone: compress_ratios, which may go on for layers that predict
// further tokens, layer_types, or a heavy one and another, then both types by turns.
[[nodiscard]] std::vector<int> read_ratios(const JsonFields& config, const CompressRates& rates, int num_layers) {
  std::vector<int> ratios;
  if (config.has("layer_types")) {
    for (const std::string& type : config.texts("layer_types")) {
      if (type != kSliding && type != kSparse && type != kHeavy)
        config.refuse("layer_types", "has " + in_quotes(type) + ", which is not supported (sliding_attention, " +
                                         std::string(kSparse) + ", " + std::string(kHeavy) + ")");
      ratios.push_back(type == kSliding ? 0 : type == kSparse ? rates.sparse : rates.heavy);
    }
  } else if (config.has("compress_ratios")) {
    ratios = config.integers("compress_ratios");
    const auto is_known = [&rates](int ratio) { return ratio == 0 || ratio == rates.sparse || ratio == rates.heavy; };
    if (!std::ranges::all_of(ratios, is_known))
      config.refuse("compress_ratios",
                    "must have 0, " + std::to_string(rates.sparse) + " and " + std::to_string(rates.heavy) + " alone");
  } else {
    for (int layer = 0; layer < num_layers; ++layer)
      ratios.push_back(layer >= 2 && layer % 2 != 0 ? rates.sparse : rates.heavy);
  }
  const char* key = config.has("layer_types") ? "layer_types" : "compress_ratios";
  if (static_cast<int>(ratios.size()) < num_layers) config.refuse(key, "must have an entry for each layer");
  ratios.resize(static_cast<std::size_t>(num_layers));
  return ratios;
}

// Values of a head that are rotated: partial_rotary_factor, else qk_rope_head_dim of older files.
[[nodiscard]] int read_rotated(const JsonFields& config, int head_dim) {
  constexpr const char* kFactor = "partial_rotary_factor";
  if (!config.has(kFactor) && config.has("qk_rope_head_dim")) return read_size(config, {"qk_rope_head_dim"});
  const double rotated = head_dim * read_positive(config, kFactor, 64.0 / 512);
  if (!(rotated >= 2 && rotated <= head_dim))
    config.refuse(kFactor, "must rotate at least 2 values of a head, and not more than it has");
  return static_cast<int>(rotated);
}

// Layers without entries rotate by rope_theta, and the others by compress_rope_theta.
[[nodiscard]] Position read_compressed_position(const JsonFields& config, const char* key, double theta) {
  const auto parameters = config.object("rope_parameters");
  const auto set =
      parameters ? parameters->object(key == std::string_view("rope_theta") ? "main" : "compress") : std::nullopt;
  return {.rope_theta = set ? read_positive(*set, "rope_theta", theta) : read_positive(config, key, theta),
          .pairs = RopePairs::neighbours};
}

[[nodiscard]] CompressedAttention read_compressed(const JsonFields& config, const Heads& heads, int ratio,
                                                  const CompressRates& rates) {
  CompressedAttention attention{.num_attention_heads = heads.num_attention_heads,
                                .head_dim = heads.head_dim,
                                .qk_rope_head_dim = read_rotated(config, heads.head_dim),
                                .q_lora_rank = read_size(config, {"q_lora_rank"}),
                                .o_groups = read_size(config, {"o_groups"}, 8),
                                .o_lora_rank = read_size(config, {"o_lora_rank"}),
                                .sliding_window = read_size(config, {"sliding_window"}, 128),
                                .compress_ratio = ratio};
  attention.position = ratio == 0 ? read_compressed_position(config, "rope_theta", 10000)
                                  : read_compressed_position(config, "compress_rope_theta", 160000);
  if (ratio != rates.sparse) return attention;
  attention.index_n_heads = read_size(config, {"index_n_heads"}, 64);
  attention.index_head_dim = read_size(config, {"index_head_dim"}, 128);
  attention.index_topk = read_size(config, {"index_topk"}, 512);
  return attention;
}

// Layers whose experts are chosen by token: the first num_hash_layers, or those that mlp_layer_types names.
[[nodiscard]] std::vector<bool> read_hash_layers(const JsonFields& config, int num_layers) {
  std::vector<bool> hashed;
  for (const std::string& type : config.texts("mlp_layer_types")) {
    if (type != "hash_moe" && type != "moe") config.refuse("mlp_layer_types", "must have hash_moe and moe alone");
    hashed.push_back(type == "hash_moe");
  }
  if (config.has("mlp_layer_types") && static_cast<int>(hashed.size()) != num_layers)
    config.refuse("mlp_layer_types", "must have an entry for each layer");
  const int count = config.integer("num_hash_layers", 3);
  for (int layer = static_cast<int>(hashed.size()); layer < num_layers; ++layer) hashed.push_back(layer < count);
  return hashed;
}

void read_expert_dtype(const JsonFields& config, ModelShape& shape) {
  const auto quantization = config.object("quantization_config");
  const JsonFields& place = quantization && quantization->has("expert_dtype") ? *quantization : config;
  const std::string text = place.text("expert_dtype", "fp8");
  if (text == "fp4")
    shape.expert_quantization = WeightFormat{Dtype::mxfp4, kMxfp4Group, ScaleFormat::e8m0};
  else if (text != "fp8")
    place.refuse("expert_dtype", in_quotes(text) + " is not supported (fp4, fp8)");
}

}  // namespace

void read_deepseek_v4(const JsonFields& config, ModelShape& shape) {
  LayerKind layer = read_like_llama(config, shape,
                                    {.max_position_embeddings = 1048576,
                                     .hidden_size = 4096,
                                     .intermediate_size = 2048,
                                     .num_attention_heads = 64,
                                     .num_key_value_heads = 1,
                                     .head_dim = 512,
                                     .vocab_size = 129280});
  const Heads heads = layer.gqa().heads;
  if (heads.num_key_value_heads != 1) config.refuse("num_key_value_heads", "must be 1: one key for all heads");
  layer = read_deepseek_experts(config, layer,
                                {.n_routed_experts = 256,
                                 .num_experts_per_tok = 6,
                                 .moe_intermediate_size = 2048,
                                 .routed_scaling_factor = 1.5,
                                 .scoring = ExpertScoring::sqrt_softplus});
  layer.mlp.bias = config.flag("mlp_bias", false);
  shape.residual_streams = read_size(config, {"hc_mult"}, 4);
  shape.sinkhorn_iterations = read_size(config, {"hc_sinkhorn_iters"}, 20);
  read_expert_dtype(config, shape);
  const CompressRates rates = read_compress_rates(config);
  const int num_layers = read_num_layers(config, {"num_hidden_layers"}, 43);
  const std::vector<int> ratios = read_ratios(config, rates, num_layers);
  const std::vector<bool> hashed = read_hash_layers(config, num_layers);
  shape.kinds.clear(), shape.layers.clear();
  for (std::size_t index = 0; index < ratios.size(); ++index) {
    LayerKind kind = layer;
    kind.attention = read_compressed(config, heads, ratios[index], rates);
    kind.experts->by_token_id = hashed[index];
    kind.experts->correction_bias = !hashed[index];
    add_layer(shape, kind);
  }
  if (const auto tables = std::ranges::count(hashed, true); tables > 0)
    shape.notes.push_back("the tables that choose experts by token id (tid2eid, in " + std::to_string(tables) +
                          " layers) are not counted in the weights");
  shape.tensor_names = nullptr;
}

}  // namespace dculab
