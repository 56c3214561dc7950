#include "model/families/config_fields.hpp"

#include <string>

#include "fields/printable_text.hpp"

namespace dculab {
namespace {

constexpr double kDefaultRopeTheta = 10000.0;

// `rope_scaling` in older exports; newer ones nest it with rope_theta in `rope_parameters`.
RopeScaling read_rope_scaling(const JsonFields& rope) {
  const char* key = rope.has("rope_type") ? "rope_type" : "type";
  const std::string type = rope.text(key, "default");
  if (rope.number("partial_rotary_factor", 1.0) != 1.0) rope.refuse("partial_rotary_factor", "must be 1");
  RopeScaling scaling;
  if (type == "default") return scaling;
  if (type != "linear" && type != "llama3")
    rope.refuse(key, in_quotes(type) + " is not a supported RoPE scaling (default, linear, llama3)");
  scaling.kind = type == "linear" ? RopeScalingKind::linear : RopeScalingKind::llama3;
  scaling.factor = rope.number("factor");
  if (!(scaling.factor >= 1.0)) rope.refuse("factor", "must be at least 1");
  if (type == "linear") return scaling;
  scaling.low_freq_factor = rope.number("low_freq_factor");
  scaling.high_freq_factor = rope.number("high_freq_factor");
  scaling.original_max_position_embeddings = rope.integer("original_max_position_embeddings");
  if (!(scaling.low_freq_factor > 0 && scaling.low_freq_factor < scaling.high_freq_factor))
    rope.refuse("high_freq_factor", "must be larger than low_freq_factor, and both positive");
  if (scaling.original_max_position_embeddings < 1) rope.refuse("original_max_position_embeddings", "must be positive");
  return scaling;
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
  return positive(config, key, config.integer(key, fallback));
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

Position read_rope(const JsonFields& config) {
  Position position;
  position.rope_theta = config.number("rope_theta", kDefaultRopeTheta);
  if (const auto scaling = config.object("rope_scaling")) position.rope_scaling = read_rope_scaling(*scaling);
  if (const auto parameters = config.object("rope_parameters")) {
    position.rope_theta = parameters->number("rope_theta", position.rope_theta);
    position.rope_scaling = read_rope_scaling(*parameters);
  }
  if (!(position.rope_theta > 1.0)) config.refuse("rope_theta", "must be larger than 1");
  return position;
}

ActivationKind read_gelu(const JsonFields& config, const char* key) {
  const std::string activation = config.text(key, "gelu");
  if (activation == "gelu") return ActivationKind::gelu;
  if (activation == "gelu_new" || activation == "gelu_pytorch_tanh") return ActivationKind::gelu_tanh;
  config.refuse(key, in_quotes(activation) + " is not supported (gelu, gelu_new, gelu_pytorch_tanh)");
}

}  // namespace dculab
