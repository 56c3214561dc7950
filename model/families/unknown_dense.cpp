// A dense decoder whose family is not known: most are like Llama, and their configurations have its keys.
#include <algorithm>
#include <string>
#include <vector>

#include "fields/printable_text.hpp"
#include "model/families/config_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {
namespace {

// The keys of Llama, and where they differ those of ChatGLM and Falcon.
void read_sizes(const JsonFields& config, ModelShape& shape, LayerKind& layer) {
  Heads& heads = layer.gqa().heads;
  shape.hidden_size = read_size(config, {"hidden_size"});
  heads.num_attention_heads = read_size(config, {"num_attention_heads"});
  heads.num_key_value_heads =
      read_size(config, {"num_key_value_heads", "num_kv_heads", "multi_query_group_num"}, heads.num_attention_heads);
  const bool has_head_size = config.has("head_dim") || config.has("kv_channels");
  heads.head_dim = has_head_size ? read_size(config, {"head_dim", "kv_channels"})
                                 : equal_heads(config, shape.hidden_size, heads.num_attention_heads);
  layer.mlp.intermediate_size = read_size(config, {"intermediate_size", "ffn_hidden_size"});
  layer.mlp.activation = read_activation(config, "hidden_act", "silu");
  shape.vocab_size = read_size(config, {"vocab_size", "padded_vocab_size"});
  shape.max_position_embeddings = read_size(config, {"max_position_embeddings", "seq_length"}, 2048);
  shape.tie_word_embeddings = config.flag("tie_word_embeddings", false);
}

// LayerNorm's epsilon has another name than RMSNorm's.
void read_norm(const JsonFields& config, ModelShape& shape) {
  const bool layer_norm = !config.has("rms_norm_eps") && !config.flag("rmsnorm", false) &&
                          (config.has("layer_norm_eps") || config.has("layer_norm_epsilon"));
  shape.norm = layer_norm ? NormKind::layer_norm : NormKind::rms_norm;
}

// Whether each layer rotates. [num_layers]; empty where nothing says so: all do.
[[nodiscard]] std::vector<int> read_rotating_layers(const JsonFields& config, int num_layers) {
  std::vector<int> rotates = config.integers(kNoRopeLayers);
  const int interval = config.integer("no_rope_layer_interval", 0);
  if (interval < 0) config.refuse("no_rope_layer_interval", "must not be negative");
  if (rotates.empty() && interval > 0)
    for (int layer = 0; layer < num_layers; ++layer) rotates.push_back((layer + 1) % interval == 0 ? 0 : 1);
  const bool is_of_all = std::ssize(rotates) == num_layers;
  if (!rotates.empty() &&
      (!is_of_all || std::ranges::any_of(rotates, [](int value) { return value != 0 && value != 1; })))
    config.refuse(kNoRopeLayers, "must have 0 or 1 for each of the " + std::to_string(num_layers) + " layers");
  return rotates;
}

// A window in the layers that layer_types names; without it in all, or in all but one in sliding_window_pattern.
void set_unknown_layers(const JsonFields& config, ModelShape& shape, const LayerKind& full) {
  const int num_layers = read_num_layers(config, {"num_hidden_layers", "num_layers"});
  int window = 0;
  if (config.has("sliding_window") && config.flag("use_sliding_window", true))
    window = sliding_window(shape, read_size(config, {"sliding_window"}));
  const int pattern = read_size(config, {"sliding_window_pattern", "_sliding_window_pattern"}, 1);
  const auto type_of = [pattern](int index) { return pattern > 1 && (index + 1) % pattern == 0 ? kFull : kSliding; };
  const std::vector<std::string> types = read_layer_types(config, num_layers, type_of);
  const std::vector<int> rotates = read_rotating_layers(config, num_layers);
  shape.kinds.clear(), shape.layers.clear();
  for (std::size_t layer = 0; layer < types.size(); ++layer) {
    LayerKind kind = full;
    if (types[layer] == kSliding) kind.gqa().sliding_window = window;
    if (!rotates.empty() && rotates[layer] == 0) kind.gqa().position = {.kind = PositionKind::none};
    add_layer(shape, kind);
  }
}

// " in 24 of 32 layers"; empty of all.
[[nodiscard]] std::string in_layers_text(const ModelShape& shape, int count) {
  return count == shape.num_layers()
             ? ""
             : " in " + std::to_string(count) + " of " + std::to_string(shape.num_layers()) + " layers";
}

// Of all layers whose kind `is_it`.
template <class IsIt>
[[nodiscard]] int count_layers(const ModelShape& shape, IsIt is_it) {
  int count = 0;
  for (int layer = 0; layer < shape.num_layers(); ++layer) count += is_it(shape.layer(layer).gqa()) ? 1 : 0;
  return count;
}

// "RMSNorm, gated SiLU MLP, RoPE, biases of attention, a window of 4096 tokens in 24 of 32 layers"
[[nodiscard]] std::string assumed_text(const ModelShape& shape) {
  const LayerKind& kind = shape.kinds.front();
  std::string text = shape.norm == NormKind::layer_norm ? "LayerNorm" : "RMSNorm";
  text += is_gelu(kind.mlp.activation) ? ", gated GELU MLP, RoPE" : ", gated SiLU MLP, RoPE";
  text += in_layers_text(
      shape, count_layers(shape, [](const Gqa& attention) { return attention.position.kind == PositionKind::rope; }));
  text += kind.gqa().qkv_bias && kind.mlp.bias ? ", biases"
          : kind.gqa().qkv_bias                ? ", biases of attention"
          : kind.mlp.bias                      ? ", biases of the MLP"
                                               : ", no biases";
  const auto is_windowed = [](const Gqa& attention) { return attention.sliding_window > 0; };
  for (const LayerKind& each : shape.kinds)
    if (const int window = each.gqa().sliding_window; window > 0)
      return text + ", a window of " + std::to_string(window) + " tokens" +
             in_layers_text(shape, count_layers(shape, is_windowed));
  return text;
}

}  // namespace

void read_unknown_dense(const JsonFields& config, const std::string& model_type, ModelShape& shape) {
  LayerKind layer;
  read_sizes(config, shape, layer);
  read_norm(config, shape);
  layer.gqa().position.rope_theta = read_positive(config, "rope_theta", 10000);
  layer.gqa().qkv_bias = layer.gqa().output_bias = config.flag("attention_bias", false);
  if (config.flag("add_qkv_bias", false)) layer.gqa().qkv_bias = true;
  layer.mlp.bias = config.flag("mlp_bias", false);
  set_unknown_layers(config, shape, layer);
  shape.tensor_names = nullptr;
  shape.notes.push_back("model_type " + in_quotes(model_type) +
                        " is not known: predicted as a dense decoder like Llama (" + assumed_text(shape) + ")");
}

}  // namespace dculab
