// The sizes of a model and of its kinds of layers, by their names in config.json: what traces have, and what scenarios
// may change.
#pragma once

#include <string_view>
#include <tuple>

#include "config/key_list.hpp"
#include "model/model_shape.hpp"

namespace dculab::config {

inline constexpr std::string_view kLayersField = "num_hidden_layers";
inline constexpr KeyTraits kRequiredSize{.bounds = between(1, kLargestModelField), .necessity = Necessity::required};
inline constexpr KeyTraits kOptionalSize{.bounds = between(1, kLargestModelField), .absent = "none"};

struct ModelSizes {
  using Target = ModelShape;
  static constexpr auto keys = std::tuple(
      value("hidden_size", &ModelShape::hidden_size, "values of a token between layers", kRequiredSize),
      value("vocab_size", &ModelShape::vocab_size, "tokens that there are", kRequiredSize),
      value("max_position_embeddings", &ModelShape::max_position_embeddings, "longest context", kRequiredSize));
};

// Those of an attention, by its kind.
template <class Attention>
struct AttentionSizes;

template <>
struct AttentionSizes<Gqa> {
  using Target = Gqa;
  static constexpr auto keys = std::tuple(
      value(
          "num_attention_heads", [](auto& gqa) -> auto& { return gqa.heads.num_attention_heads; }, "query heads",
          kRequiredSize),
      value(
          "num_key_value_heads", [](auto& gqa) -> auto& { return gqa.heads.num_key_value_heads; },
          "KV heads, which query heads share", kRequiredSize),
      value(
          "head_dim", [](auto& gqa) -> auto& { return gqa.heads.head_dim; }, "values of a head", kRequiredSize));
};

template <>
struct AttentionSizes<Mla> {
  using Target = Mla;
  static constexpr auto keys = std::tuple(
      value("num_attention_heads", &Mla::num_attention_heads, "query heads", kRequiredSize),
      value("kv_lora_rank", &Mla::kv_lora_rank, "values of a token's latent", kRequiredSize),
      value("qk_nope_head_dim", &Mla::qk_nope_head_dim, "values of a query's head that are not rotated", kRequiredSize),
      value("qk_rope_head_dim", &Mla::qk_rope_head_dim, "values of a query's head that are rotated", kRequiredSize),
      value("v_head_dim", &Mla::v_head_dim, "values of a head of V", kRequiredSize));
};

template <>
struct AttentionSizes<CompressedAttention> {
  using Target = CompressedAttention;
  static constexpr auto keys = std::tuple(
      value("num_attention_heads", &Target::num_attention_heads, "query heads", kRequiredSize),
      value("head_dim", &Target::head_dim, "values of a head", kRequiredSize),
      value("qk_rope_head_dim", &Target::qk_rope_head_dim, "values of a head that are rotated", kRequiredSize),
      value("q_lora_rank", &Target::q_lora_rank, "values of the queries' latent", kRequiredSize),
      value("o_groups", &Target::o_groups, "groups of heads that `o_a_proj` turns into a latent each", kRequiredSize),
      value("o_lora_rank", &Target::o_lora_rank, "values of such a latent", kRequiredSize),
      value("sliding_window", &Target::sliding_window, "tokens that a token sees, itself the last", kRequiredSize));
};

template <>
struct AttentionSizes<GatedDeltaNet> {
  using Target = GatedDeltaNet;
  static constexpr auto keys = std::tuple(
      value("linear_num_key_heads", &Target::num_key_heads, "heads of keys", kRequiredSize),
      value("linear_num_value_heads", &Target::num_value_heads, "heads of values", kRequiredSize),
      value("linear_key_head_dim", &Target::key_head_dim, "values of a key's head", kRequiredSize),
      value("linear_value_head_dim", &Target::value_head_dim, "values of a value's head", kRequiredSize),
      value("linear_conv_kernel_dim", &Target::conv_kernel, "tokens that the causal convolution sees", kRequiredSize));
};

// How many experts there are, and how many a token goes to.
inline constexpr auto kExpertCounts = std::tuple(
    value("num_experts", &Experts::num_experts, "routed experts", kRequiredSize),
    value("num_experts_per_tok", &Experts::num_experts_per_tok, "of them that a token goes to", kRequiredSize));

// Those of a mixture of experts that a scenario may change, by their names in most families' config.json.
struct MixtureSizes {
  using Target = Experts;
  static constexpr auto keys = std::tuple_cat(
      kExpertCounts,
      std::tuple(value("moe_intermediate_size", &Experts::intermediate_size, "width of an expert", kRequiredSize)));
};

}  // namespace dculab::config
