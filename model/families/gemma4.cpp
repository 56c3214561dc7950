// Gemma 4, its text model: windows in five of six layers; the others have larger heads, fewer KV heads, and may take V
// from K's projection. Q, K and V are normed, scores are not scaled. The last layers may read the KV of earlier ones. A
// mixture of experts stands beside the MLP, not in its place. Source: transformers,
// models/{gemma4,gemma4_unified}/{configuration,modeling}_*.py.
#include <algorithm>
#include <cmath>

#include "fields/printable_text.hpp"
#include "model/families/config_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {
namespace {

// What the configuration classes of the two leave differently where config.json is silent.
struct Gemma4Defaults {
  int max_position_embeddings = 0, sliding_window = 0;
  int hidden_size_per_layer_input = 0;
};

// Proportional RoPE leaves planes of a head as they are; kernels rotate these by an angle of 0, so all are priced.
[[nodiscard]] Position read_gemma4_rope(const JsonFields& config, std::string_view layer_type, double theta) {
  Position position{.rope_theta = theta};
  const auto parameters = config.object("rope_parameters");
  const auto set = parameters ? parameters->object(layer_type) : std::nullopt;
  if (!set) return position;
  const std::string type = set->text("rope_type", "default");
  if (type != "default" && type != "proportional")
    set->refuse("rope_type", in_quotes(type) + " is not supported (default, proportional)");
  position.rope_theta = read_positive(*set, "rope_theta", theta);
  return position;
}

// Of layers with a window.
[[nodiscard]] LayerKind read_windowed(const JsonFields& config, ModelShape& shape, const Gemma4Defaults& defaults) {
  LayerKind layer = read_like_llama(config, shape,
                                    {.max_position_embeddings = defaults.max_position_embeddings,
                                     .hidden_size = 2304,
                                     .intermediate_size = 9216,
                                     .num_attention_heads = 8,
                                     .num_key_value_heads = 4,
                                     .head_dim = 256,
                                     .tie_word_embeddings = true,
                                     .activation = "gelu_pytorch_tanh",
                                     .activation_key = "hidden_activation",
                                     .vocab_size = 262144});
  layer.norms = NormPlacement::sandwich;
  Gqa& attention = layer.gqa();
  attention.query_scalar = 1;
  attention.qk_norm = QkNorm::per_head;
  attention.v_norm = true;
  attention.qkv_bias = attention.output_bias = config.flag("attention_bias", false);
  attention.sliding_window = sliding_window(shape, read_size(config, {"sliding_window"}, defaults.sliding_window));
  attention.position = read_gemma4_rope(config, kSliding, 1e4);
  return layer;
}

[[nodiscard]] LayerKind read_full(const JsonFields& config, LayerKind layer) {
  Gqa& attention = layer.gqa();
  attention.sliding_window = 0;
  attention.heads.head_dim = read_size(config, {"global_head_dim"}, 512);
  attention.k_eq_v = config.flag("attention_k_eq_v", false);
  if (attention.k_eq_v)
    attention.heads.num_key_value_heads =
        read_size(config, {"num_global_key_value_heads"}, attention.heads.num_key_value_heads);
  attention.position = read_gemma4_rope(config, kFull, 1e6);
  return layer;
}

// Beside the MLP, which stays.
void read_gemma4_experts(const JsonFields& config, LayerKind& layer) {
  if (!config.flag("enable_moe_block", false)) return;
  layer.experts = Experts{.num_experts = read_size(config, {"num_experts"}),
                          .num_experts_per_tok = read_size(config, {"top_k_experts"}),
                          .intermediate_size = read_size(config, {"moe_intermediate_size"}),
                          .activation = layer.mlp.activation,
                          .own_norms = true};
}

// The last layer before `end` of the same type.
[[nodiscard]] int kv_source_of(const JsonFields& config, const std::vector<std::string>& types, std::size_t layer,
                               std::size_t end) {
  for (std::size_t source = end; source-- > 0;)
    if (types[source] == types[layer]) return static_cast<int>(source);
  config.refuse("num_kv_shared_layers", "leaves no layer of type " + types[layer] + " with a KV of its own");
}

// The last layers, and their MLPs may be twice as wide.
[[nodiscard]] std::size_t read_sharing_layers(const JsonFields& config, std::size_t num_layers) {
  const int count = config.integer("num_kv_shared_layers", 0);
  if (count < 0 || count >= static_cast<int>(num_layers))
    config.refuse("num_kv_shared_layers", "must be 0 or more, and fewer than the layers");
  return static_cast<std::size_t>(count);
}

void read_gemma4_text(const JsonFields& config, ModelShape& shape, const Gemma4Defaults& defaults) {
  if (config.text("use_bidirectional_attention", "") == "all")
    config.refuse("use_bidirectional_attention", "is all, which is not supported: tokens would see those after them");
  const bool is_silent = !config.mentions("hidden_size_per_layer_input");
  if (is_silent ? defaults.hidden_size_per_layer_input > 0 : config.integer("hidden_size_per_layer_input", 0) > 0)
    config.refuse(is_silent ? "model_type" : "hidden_size_per_layer_input",
                  "has an embedding for each layer (hidden_size_per_layer_input), which is not modelled");
  LayerKind windowed = read_windowed(config, shape, defaults);
  read_gemma4_experts(config, windowed);
  const LayerKind full = read_full(config, windowed);
  shape.embedding_scale = std::sqrt(static_cast<double>(shape.hidden_size));
  if (config.has("final_logit_softcapping"))
    shape.final_logit_soft_cap = read_positive(config, "final_logit_softcapping", 0);
  shape.tensor_names = nullptr;
  auto types = read_layer_types(config, read_num_layers(config, {"num_hidden_layers"}, 30),
                                [](int index) { return (index + 1) % 6 != 0 ? kSliding : kFull; });
  types.back() = kFull;
  const std::size_t first_sharing = types.size() - read_sharing_layers(config, types.size());
  shape.kinds.clear(), shape.layers.clear();
  for (std::size_t layer = 0; layer < types.size(); ++layer) {
    LayerKind kind = types[layer] == kSliding ? windowed : full;
    const bool shares = layer >= first_sharing;
    kind.gqa().shares_kv = shares;
    if (shares && config.flag("use_double_wide_mlp", false)) {
      if (kind.mlp.intermediate_size > kLargestModelField) config.refuse("intermediate_size", "is out of range");
      kind.mlp.intermediate_size *= 2;
    }
    add_layer(shape, kind);
    if (first_sharing < types.size())
      shape.kv_sources.push_back(shares ? kv_source_of(config, types, layer, first_sharing) : static_cast<int>(layer));
  }
}

}  // namespace

void read_gemma4(const JsonFields& config, ModelShape& shape) {
  read_gemma4_text(config, shape,
                   {.max_position_embeddings = 131072, .sliding_window = 512, .hidden_size_per_layer_input = 256});
}

void read_gemma4_unified(const JsonFields& config, ModelShape& shape) {
  read_gemma4_text(config, shape, {.max_position_embeddings = 262144, .sliding_window = 1024});
}

}  // namespace dculab
