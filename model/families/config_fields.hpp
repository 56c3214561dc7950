// Fields of config.json that several families of models share, checked one by one.
#pragma once

#include <initializer_list>

#include "fields/json_fields.hpp"
#include "model/model_shape.hpp"

namespace dculab {

// `value`, which stands under `key`. Throws InputError unless it is positive.
[[nodiscard]] int positive(const JsonFields& config, const char* key, int value);

// The size under the first of `keys` that is there; the first is the one that is missed. Throws InputError.
[[nodiscard]] int read_size(const JsonFields& config, std::initializer_list<const char*> keys);

// The same with a default.
[[nodiscard]] int read_size(const JsonFields& config, std::initializer_list<const char*> keys, int fallback);

[[nodiscard]] double read_epsilon(const JsonFields& config, const char* key, double fallback);

// hidden_size / num_attention_heads, which must divide it.
[[nodiscard]] int equal_heads(const JsonFields& config, int hidden_size, int num_attention_heads);

// 4 * hidden_size: the MLP of the classic transformer.
[[nodiscard]] int classic_mlp_width(const JsonFields& config, int hidden_size);

// rope_theta and rope_scaling, or the newer rope_parameters.
[[nodiscard]] Position read_rope(const JsonFields& config);

// "gelu", "gelu_new", ...
[[nodiscard]] ActivationKind read_gelu(const JsonFields& config, const char* key);

}  // namespace dculab
