// The whole-number fields of a ModelShape by their name in config.json.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "core/model_shape.hpp"

namespace dculab::config {

inline constexpr std::array<std::pair<std::string_view, int ModelShape::*>, 8> kModelFields{{
    {"hidden_size", &ModelShape::hidden_size},
    {"intermediate_size", &ModelShape::intermediate_size},
    {"num_hidden_layers", &ModelShape::num_hidden_layers},
    {"num_attention_heads", &ModelShape::num_attention_heads},
    {"num_key_value_heads", &ModelShape::num_key_value_heads},
    {"head_dim", &ModelShape::head_dim},
    {"vocab_size", &ModelShape::vocab_size},
    {"max_position_embeddings", &ModelShape::max_position_embeddings},
}};

// Far above any model, and small enough that products of two fit a 64-bit integer.
inline constexpr double kLargestModelField = 1 << 24;

}  // namespace dculab::config
