// The whole-number fields of a ModelShape by their name in config.json.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "model/model_shape.hpp"

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

inline constexpr std::array<std::pair<std::string_view, bool ModelShape::*>, 5> kModelFlags{{
    {"embedding_norm", &ModelShape::embedding_norm},
    {"qkv_bias", &ModelShape::qkv_bias},
    {"attention_output_bias", &ModelShape::attention_output_bias},
    {"mlp_bias", &ModelShape::mlp_bias},
    {"quantized_lm_head", &ModelShape::quantized_lm_head},
}};

// Words for what tells families of models apart.
template <class T, std::size_t N>
using Words = std::array<std::pair<std::string_view, T>, N>;

inline constexpr Words<ActivationKind, 3> kActivations{
    {{"silu", ActivationKind::silu}, {"gelu", ActivationKind::gelu}, {"gelu_tanh", ActivationKind::gelu_tanh}}};
inline constexpr Words<NormKind, 2> kNorms{{{"rms_norm", NormKind::rms_norm}, {"layer_norm", NormKind::layer_norm}}};
inline constexpr Words<BlockKind, 3> kBlocks{{{"sequential", BlockKind::sequential},
                                              {"parallel", BlockKind::parallel},
                                              {"parallel_two_norms", BlockKind::parallel_two_norms}}};
inline constexpr Words<PositionKind, 2> kPositions{{{"rope", PositionKind::rope}, {"alibi", PositionKind::alibi}}};

template <class T, std::size_t N>
[[nodiscard]] constexpr std::string_view word_of(const Words<T, N>& words, T value) {
  for (const auto& [text, each] : words)
    if (each == value) return text;
  return "";
}

}  // namespace dculab::config
