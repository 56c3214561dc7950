#include "model/families/config_fields.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "fields/printable_text.hpp"

namespace dculab {
namespace {

void read_llama3(const JsonFields& rope, RopeScaling& scaling) {
  scaling.low_freq_factor = rope.number("low_freq_factor");
  scaling.high_freq_factor = rope.number("high_freq_factor");
  scaling.original_max_position_embeddings = rope.integer("original_max_position_embeddings");
  if (!(scaling.low_freq_factor > 0 && scaling.low_freq_factor <= scaling.high_freq_factor))
    rope.refuse("high_freq_factor", "must be at least low_freq_factor, and both positive");
  if (scaling.original_max_position_embeddings < 1) rope.refuse("original_max_position_embeddings", "must be positive");
}

// 0.1 m ln(scale) + 1.
[[nodiscard]] double yarn_magnitude(double scale, double m) {
  return scale <= 1 ? 1.0 : 0.1 * m * std::log(scale) + 1.0;
}

[[nodiscard]] int read_original_context(const JsonFields& place) {
  constexpr const char* kKey = "original_max_position_embeddings";
  const int context = place.integer(kKey);
  if (context < 2) place.refuse(kKey, "must be at least 2, not " + std::to_string(context));
  return context;
}

void read_yarn(const JsonFields& rope, RopeScaling& scaling) {
  scaling.original_max_position_embeddings = read_original_context(rope);
  scaling.beta_fast = read_positive(rope, "beta_fast", 32);
  scaling.beta_slow = read_positive(rope, "beta_slow", 1);
  scaling.truncate = rope.flag("truncate", true);
  double magnitude = yarn_magnitude(scaling.factor, 1);
  if (rope.number("mscale", 0) != 0 && rope.number("mscale_all_dim", 0) != 0)
    magnitude = yarn_magnitude(scaling.factor, read_positive(rope, "mscale", 1)) /
                yarn_magnitude(scaling.factor, read_positive(rope, "mscale_all_dim", 1));
  scaling.attention_factor = read_positive(rope, "attention_factor", magnitude);
}

// The original context stands in the model's configuration, or beside the scaling.
void read_longrope(const JsonFields& config, const JsonFields& rope, RopeScaling& scaling) {
  const bool in_config = config.has("original_max_position_embeddings");
  scaling.original_max_position_embeddings = read_original_context(in_config ? config : rope);
  scaling.short_factor = rope.numbers("short_factor");
  if (scaling.short_factor.empty() || scaling.short_factor.size() != rope.numbers("long_factor").size())
    rope.refuse("long_factor", "must have as many entries as short_factor");
  if (std::ranges::any_of(scaling.short_factor, [](double factor) { return !(factor > 0); }))
    rope.refuse("short_factor", "must have positive entries");
  const double original = scaling.original_max_position_embeddings;
  scaling.factor = read_positive(rope, "factor", read_size(config, {"max_position_embeddings"}, 4096) / original);
  const double magnitude = scaling.factor <= 1 ? 1.0 : std::sqrt(1 + std::log(scaling.factor) / std::log(original));
  scaling.attention_factor = read_positive(rope, "attention_factor", magnitude);
}

// `rope_scaling` in older exports; newer ones nest it with rope_theta in `rope_parameters`.
RopeScaling read_rope_scaling(const JsonFields& config, const JsonFields& rope) {
  const char* key = rope.has("rope_type") ? "rope_type" : "type";
  const std::string type = rope.text(key, "default");
  RopeScaling scaling;
  if (type == "default" || type == "mrope") return scaling;
  // Frequencies change with the length beyond max_position_embeddings alone, where no context reaches.
  if (type == "dynamic" && !rope.has("original_max_position_embeddings") && !rope.has("alpha")) return scaling;
  if (type == "longrope" || type == "su") {
    scaling.kind = RopeScalingKind::longrope;
    read_longrope(config, rope, scaling);
    return scaling;
  }
  if (type != "linear" && type != "llama3" && type != "yarn")
    rope.refuse(key, in_quotes(type) + " is not a supported RoPE scaling (default, linear, llama3, yarn, longrope)");
  scaling.factor = rope.number("factor");
  if (!(scaling.factor >= 1.0)) rope.refuse("factor", "must be at least 1");
  scaling.kind = type == "linear" ? RopeScalingKind::linear
                 : type == "yarn" ? RopeScalingKind::yarn
                                  : RopeScalingKind::llama3;
  if (type == "llama3") read_llama3(rope, scaling);
  if (type == "yarn") read_yarn(rope, scaling);
  return scaling;
}

// The part of a head that is rotated, in whole planes.
void read_rotary_dim(const JsonFields& place, int head_dim, Position& position) {
  constexpr const char* kKey = "partial_rotary_factor";
  if (!place.has(kKey)) return;
  const double factor = place.number(kKey);
  position.rotary_dim = factor > 0 && factor <= 1 ? static_cast<int>(head_dim * factor) : 0;
  if (position.rotary_dim < 2) place.refuse(kKey, "must lie in (0, 1], and leave a head 2 values to rotate");
}

// What rope_scaling or a set of rope_parameters says.
void read_rope_set(const JsonFields& config, const JsonFields& set, int head_dim, Position& position) {
  position.rope_theta = set.number("rope_theta", position.rope_theta);
  if (!(position.rope_theta > 1.0)) set.refuse("rope_theta", "must be larger than 1");
  position.rope_scaling = read_rope_scaling(config, set);
  read_rotary_dim(set, head_dim, position);
}

const char* first_present(const JsonFields& config, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (config.has(key)) return key;
  return *keys.begin();
}

}  // namespace

int positive(const JsonFields& config, const char* key, int value) {
  if (value < 1) config.refuse(key, "must be positive, not " + std::to_string(value));
  return value;
}

int read_size(const JsonFields& config, std::initializer_list<const char*> keys) {
  const char* key = first_present(config, keys);
  return positive(config, key, config.integer(key));
}

int read_size(const JsonFields& config, std::initializer_list<const char*> keys, int fallback) {
  const char* key = first_present(config, keys);
  return positive(config, key, fallback > 0 ? config.integer(key, fallback) : config.integer(key));
}

double read_epsilon(const JsonFields& config, const char* key, double fallback) {
  const double epsilon = config.number(key, fallback);
  if (!(epsilon >= 0)) config.refuse(key, "must not be negative");
  return epsilon;
}

int equal_heads(const JsonFields& config, int hidden_size, int num_attention_heads) {
  if (hidden_size % num_attention_heads != 0)
    config.refuse("hidden_size", "is not a multiple of num_attention_heads, and there is no head_dim");
  return hidden_size / num_attention_heads;
}

int classic_mlp_width(const JsonFields& config, int hidden_size) {
  if (hidden_size > JsonFields::kLimit / 4) config.refuse("hidden_size", "is out of range");
  return 4 * hidden_size;
}

double read_positive(const JsonFields& config, const char* key, double fallback) {
  constexpr double kSmallest = 1e-6;  // far from what F32 takes for 0
  const double value = config.number(key, fallback);
  if (!(value >= kSmallest)) config.refuse(key, "must be positive");
  return value;
}

Position read_rope(const JsonFields& config, int head_dim, double default_theta) {
  Position position;
  position.rope_theta = config.number("rope_theta", default_theta);
  if (!(position.rope_theta > 1.0)) config.refuse("rope_theta", "must be larger than 1");
  read_rotary_dim(config, head_dim, position);
  if (const auto scaling = config.object("rope_scaling")) position.rope_scaling = read_rope_scaling(config, *scaling);
  const auto parameters = config.object("rope_parameters");
  if (!parameters) return position;
  if (parameters->has(kFull) || parameters->has(kSliding))
    config.refuse("rope_parameters", "has a set for each type of layer, which this family has not");
  read_rope_set(config, *parameters, head_dim, position);
  return position;
}

Position read_rope_of(const JsonFields& config, std::string_view layer_type, int head_dim, double default_theta) {
  Position position{.rope_theta = default_theta};
  read_rotary_dim(config, head_dim, position);  // of the types whose set does not say
  const auto parameters = config.object("rope_parameters");
  if (!parameters) return position;
  if (!parameters->has(kFull) && !parameters->has(kSliding))
    config.refuse("rope_parameters", "must have a set for each type of layer: full_attention, sliding_attention");
  if (const auto set = parameters->object(layer_type)) read_rope_set(config, *set, head_dim, position);
  return position;
}

namespace {

[[nodiscard]] std::optional<ActivationKind> gelu_of(std::string_view activation) {
  if (activation == "gelu") return ActivationKind::gelu;
  if (activation == "gelu_new" || activation == "gelu_fast" || activation == "gelu_pytorch_tanh")
    return ActivationKind::gelu_tanh;
  return std::nullopt;
}

}  // namespace

ActivationKind read_activation(const JsonFields& config, const char* key, const char* fallback) {
  const std::string activation = config.text(key, fallback);
  if (activation == "silu" || activation == "swish") return ActivationKind::silu;
  if (const auto gelu = gelu_of(activation)) return *gelu;
  config.refuse(key, in_quotes(activation) + " is not supported (silu, gelu, gelu_new, gelu_fast, gelu_pytorch_tanh)");
}

ActivationKind read_gelu(const JsonFields& config, const char* key, const char* fallback) {
  const std::string activation = config.text(key, fallback);
  if (const auto gelu = gelu_of(activation)) return *gelu;
  config.refuse(key, in_quotes(activation) + " is not supported (gelu, gelu_new, gelu_fast, gelu_pytorch_tanh)");
}

int read_num_layers(const JsonFields& config, std::initializer_list<const char*> keys, int fallback) {
  const int count = read_size(config, keys, fallback);
  if (count > kMostLayers) config.refuse(first_present(config, keys), "is out of range");
  return count;
}

std::vector<int> read_layer_numbers(const JsonFields& config, const char* key, int num_layers) {
  std::vector<int> numbers = config.integers(key);
  for (const int number : numbers)
    if (number < 0 || number >= num_layers)
      config.refuse(
          key, "names layer " + std::to_string(number) + ", and the layers are 0 to " + std::to_string(num_layers - 1));
  return numbers;
}

LayerKind read_like_llama(const JsonFields& config, ModelShape& shape, const LlamaDefaults& defaults) {
  LayerKind layer;
  Heads& heads = layer.gqa().heads;
  layer.mlp.activation = read_activation(config, defaults.activation_key, defaults.activation);
  shape.hidden_size = read_size(config, {"hidden_size"}, defaults.hidden_size);
  layer.mlp.intermediate_size = read_size(config, {"intermediate_size"}, defaults.intermediate_size);
  heads.num_attention_heads = read_size(config, {"num_attention_heads"}, defaults.num_attention_heads);
  shape.vocab_size = read_size(config, {"vocab_size"}, defaults.vocab_size);
  const int kv_heads = defaults.num_key_value_heads == 0 || config.mentions("num_key_value_heads")
                           ? heads.num_attention_heads
                           : defaults.num_key_value_heads;
  heads.num_key_value_heads = read_size(config, {"num_key_value_heads"}, kv_heads);
  heads.head_dim = config.has("head_dim") ? read_size(config, {"head_dim"})
                   : defaults.head_dim > 0 && !config.mentions("head_dim")
                       ? defaults.head_dim
                       : equal_heads(config, shape.hidden_size, heads.num_attention_heads);
  shape.max_position_embeddings = read_size(config, {"max_position_embeddings"}, defaults.max_position_embeddings);
  shape.tie_word_embeddings = config.flag("tie_word_embeddings", defaults.tie_word_embeddings);
  shape.norm_eps = read_epsilon(config, "rms_norm_eps", defaults.rms_norm_eps);
  return layer;
}

void check_layer_types(const JsonFields& config, const std::vector<std::string>& types, int num_layers) {
  if (static_cast<int>(types.size()) != num_layers)
    config.refuse("layer_types",
                  "has " + std::to_string(types.size()) + " entries for " + std::to_string(num_layers) + " layers");
  for (const std::string& type : types)
    if (type != kSliding && type != kFull)
      config.refuse("layer_types",
                    "has " + in_quotes(type) + ", which is not supported (full_attention, sliding_attention)");
}

int sliding_window(const ModelShape& shape, int window) { return window < shape.max_position_embeddings ? window : 0; }

void set_layers_by_type(ModelShape& shape, const std::vector<std::string>& types, const LayerKind& windowed,
                        const LayerKind& full) {
  shape.kinds.clear();
  shape.layers.clear();
  for (const std::string& type : types) add_layer(shape, type == kSliding ? windowed : full);
}

}  // namespace dculab
