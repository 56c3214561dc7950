// Fields of config.json that several families of models share, checked one by one.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "fields/json_fields.hpp"
#include "model/model_shape.hpp"

namespace dculab {

// `value`, which stands under `key`. Throws InputError unless it is positive.
[[nodiscard]] int positive(const JsonFields& config, const char* key, int value);

// The size under the first of `keys` that is there; the first is the one that is missed. Throws InputError.
[[nodiscard]] int read_size(const JsonFields& config, std::initializer_list<const char*> keys);

// The same with a default; 0 = none.
[[nodiscard]] int read_size(const JsonFields& config, std::initializer_list<const char*> keys, int fallback);

[[nodiscard]] double read_epsilon(const JsonFields& config, const char* key, double fallback);

// hidden_size / num_attention_heads, which must divide it.
[[nodiscard]] int equal_heads(const JsonFields& config, int hidden_size, int num_attention_heads);

// 4 * hidden_size: the MLP of the classic transformer.
[[nodiscard]] int classic_mlp_width(const JsonFields& config, int hidden_size);

// rope_theta and rope_scaling, or the newer rope_parameters; partial_rotary_factor of a head.
[[nodiscard]] Position read_rope(const JsonFields& config, int head_dim, double default_theta = 10000.0);

// The same of layers of a type ("full_attention"), whose set stands under that name in rope_parameters.
[[nodiscard]] Position read_rope_of(const JsonFields& config, std::string_view layer_type, int head_dim,
                                    double default_theta);

// "silu", "gelu", "gelu_new", "gelu_fast", ...
[[nodiscard]] ActivationKind read_activation(const JsonFields& config, const char* key, const char* fallback);

// The same, which must be a GELU.
[[nodiscard]] ActivationKind read_gelu(const JsonFields& config, const char* key, const char* fallback = "gelu");

// Where config.json of a family like Llama's is silent.
struct LlamaDefaults {
  int max_position_embeddings = 2048;
  int hidden_size = 0;          // 0 = must be there
  int intermediate_size = 0;    // 0 = must be there
  int num_hidden_layers = 0;    // 0 = must be there
  int num_attention_heads = 0;  // 0 = must be there
  int num_key_value_heads = 0;  // 0 = as many as query heads
  int head_dim = 0;             // 0 = hidden_size / num_attention_heads
  double rms_norm_eps = 1e-6;
  bool tie_word_embeddings = false;
  const char* activation = "silu";
  const char* activation_key = "hidden_act";
  int vocab_size = 0;  // 0 = must be there
};

// The sizes of a model with Llama's keys, and what its layers are made of: RMSNorm, RoPE, a gated MLP, no window, no
// biases. The caller sets the layers.
[[nodiscard]] LayerKind read_like_llama(const JsonFields& config, ModelShape& shape, const LlamaDefaults& defaults);

// Throws InputError for more than any model has.
[[nodiscard]] int read_num_layers(const JsonFields& config,
                                  std::initializer_list<const char*> keys = {"num_hidden_layers"}, int fallback = 0);

// The numbers of layers under `key`, from 0; none where it is absent. Throws InputError for a layer that is not there.
[[nodiscard]] std::vector<int> read_layer_numbers(const JsonFields& config, const char* key, int num_layers);

// `value` > 0, or what stands under `key`. Throws InputError.
[[nodiscard]] double read_positive(const JsonFields& config, const char* key, double fallback);

inline constexpr std::string_view kSliding = "sliding_attention", kFull = "full_attention";

// Throws InputError unless there is one for each layer, kSliding or kFull.
void check_layer_types(const JsonFields& config, const std::vector<std::string>& types, int num_layers);

// The type of each layer, "sliding_attention" or "full_attention": `layer_types`, or where that is missing
// `type_of(index)`. [num_layers].
template <class TypeOf>
[[nodiscard]] std::vector<std::string> read_layer_types(const JsonFields& config, int num_layers, TypeOf&& type_of) {
  if (config.has("layer_types")) {
    std::vector<std::string> types = config.texts("layer_types");
    check_layer_types(config, types, num_layers);
    return types;
  }
  std::vector<std::string> types;
  for (int index = 0; index < num_layers; ++index) types.emplace_back(type_of(index));
  return types;
}

// 0 where it is as long as the longest sequence, and never slides.
[[nodiscard]] int sliding_window(const ModelShape& shape, int window);

// The layers whose type is kSliding are `windowed`, the rest `full`.
void set_layers_by_type(ModelShape& shape, const std::vector<std::string>& types, const LayerKind& windowed,
                        const LayerKind& full);

}  // namespace dculab
