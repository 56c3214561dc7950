// Llama and its kin, which differ in windows and biases: RMSNorm, RoPE, SwiGLU, "model.layers.N.".
// Defaults: transformers, models/{llama,mistral,qwen2}/configuration_*.py.
#include <algorithm>
#include <string>

#include "fields/printable_text.hpp"
#include "model/families/config_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {
namespace {

constexpr double kDefaultRmsNormEps = 1e-6;
constexpr int kDefaultWindow = 4096;  // of Mistral and Qwen2
constexpr int kDefaultMaxWindowLayers = 28;

// What all of them share: the model's sizes, and its layers without windows and biases.
void read_sizes(const JsonFields& config, ModelShape& shape, int default_positions) {
  const std::string activation = config.text("hidden_act", "silu");
  if (activation != "silu") config.refuse("hidden_act", in_quotes(activation) + " is not supported (silu)");
  LayerKind layer;
  Heads& heads = layer.attention.heads;
  shape.hidden_size = read_size(config, {"hidden_size"});
  layer.mlp.intermediate_size = read_size(config, {"intermediate_size"});
  const int num_layers = read_size(config, {"num_hidden_layers"});
  heads.num_attention_heads = read_size(config, {"num_attention_heads"});
  shape.vocab_size = read_size(config, {"vocab_size"});
  heads.num_key_value_heads = read_size(config, {"num_key_value_heads"}, heads.num_attention_heads);
  heads.head_dim = config.has("head_dim") ? read_size(config, {"head_dim"})
                                          : equal_heads(config, shape.hidden_size, heads.num_attention_heads);
  shape.max_position_embeddings = read_size(config, {"max_position_embeddings"}, default_positions);
  shape.tie_word_embeddings = config.flag("tie_word_embeddings", false);
  shape.norm_eps = read_epsilon(config, "rms_norm_eps", kDefaultRmsNormEps);
  layer.attention.position = read_rope(config);
  set_layers(shape, num_layers, layer);
}

// A window as long as the longest sequence never slides.
void set_window(ModelShape& shape, int window) {
  if (window < shape.max_position_embeddings) shape.kinds.front().attention.sliding_window = window;
}

// How many of Qwen2's layers have a window: newer exports list them, older ones say from which on.
int windowed_layers(const JsonFields& config, const ModelShape& shape) {
  if (!config.flag("use_sliding_window", false) || (config.mentions("sliding_window") && !config.has("sliding_window")))
    return 0;
  if (config.has("layer_types")) {
    const auto types = config.texts("layer_types");
    return static_cast<int>(std::count(types.begin(), types.end(), "sliding_attention"));
  }
  return shape.num_layers() - config.integer("max_window_layers", kDefaultMaxWindowLayers);
}

}  // namespace

void read_llama(const JsonFields& config, ModelShape& shape) {
  read_sizes(config, shape, 2048);
  auto& [attention, mlp, block] = shape.kinds.front();
  attention.qkv_bias = attention.output_bias = config.flag("attention_bias", false);
  mlp.bias = config.flag("mlp_bias", false);
}

// A window that is null does not slide; one that is left out is the default.
void read_mistral(const JsonFields& config, ModelShape& shape) {
  read_sizes(config, shape, 32 * 4096);
  if (!config.mentions("num_key_value_heads")) shape = with_kv_heads(shape, 8);
  if (config.has("sliding_window") || !config.mentions("sliding_window"))
    set_window(shape, read_size(config, {"sliding_window"}, kDefaultWindow));
}

void read_qwen2(const JsonFields& config, ModelShape& shape) {
  read_sizes(config, shape, 32768);
  if (!config.mentions("num_key_value_heads")) shape = with_kv_heads(shape, 32);
  shape.kinds.front().attention.qkv_bias = true;
  const int layers = windowed_layers(config, shape);
  if (layers <= 0) return;
  if (layers < shape.num_layers())
    config.refuse(config.has("layer_types") ? "layer_types" : "max_window_layers",
                  "gives a sliding window to some layers and not to others, which is not supported");
  set_window(shape, read_size(config, {"sliding_window"}, kDefaultWindow));
}

}  // namespace dculab
