// The fields of a model and of its kinds of layers, by their names in config.json.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "model/model_shape.hpp"

namespace dculab::config {

inline constexpr std::string_view kLayersField = "num_hidden_layers";

// Calls visit(name, value) for every whole number; `Shape` may be const.
template <class Shape, class Visit>
void visit_model_sizes(Shape& model, Visit&& visit) {
  visit("hidden_size", model.hidden_size);
  visit("vocab_size", model.vocab_size);
  visit("max_position_embeddings", model.max_position_embeddings);
}

template <class Gqa, class Visit>
requires std::same_as<std::remove_const_t<Gqa>, dculab::Gqa>
void visit_attention_sizes(Gqa& attention, Visit&& visit) {
  visit("num_attention_heads", attention.heads.num_attention_heads);
  visit("num_key_value_heads", attention.heads.num_key_value_heads);
  visit("head_dim", attention.heads.head_dim);
}

template <class Mla, class Visit>
requires std::same_as<std::remove_const_t<Mla>, dculab::Mla>
void visit_attention_sizes(Mla& attention, Visit&& visit) {
  visit("num_attention_heads", attention.num_attention_heads);
  visit("kv_lora_rank", attention.kv_lora_rank);
  visit("qk_nope_head_dim", attention.qk_nope_head_dim);
  visit("qk_rope_head_dim", attention.qk_rope_head_dim);
  visit("v_head_dim", attention.v_head_dim);
}

template <class Entries, class Visit>
requires std::same_as<std::remove_const_t<Entries>, CompressedAttention>
void visit_attention_sizes(Entries& attention, Visit&& visit) {
  visit("num_attention_heads", attention.num_attention_heads);
  visit("head_dim", attention.head_dim);
  visit("qk_rope_head_dim", attention.qk_rope_head_dim);
  visit("q_lora_rank", attention.q_lora_rank);
  visit("o_groups", attention.o_groups);
  visit("o_lora_rank", attention.o_lora_rank);
  visit("sliding_window", attention.sliding_window);
}

// Those that only layers with entries, or with an indexer, have.
template <class Entries, class Visit>
void visit_entry_sizes(Entries& attention, Visit&& visit) {
  visit("compress_ratio", attention.compress_ratio);
  visit("index_n_heads", attention.index_n_heads);
  visit("index_head_dim", attention.index_head_dim);
  visit("index_topk", attention.index_topk);
}

template <class Net, class Visit>
requires std::same_as<std::remove_const_t<Net>, GatedDeltaNet>
void visit_attention_sizes(Net& net, Visit&& visit) {
  visit("linear_num_key_heads", net.num_key_heads);
  visit("linear_num_value_heads", net.num_value_heads);
  visit("linear_key_head_dim", net.key_head_dim);
  visit("linear_value_head_dim", net.value_head_dim);
  visit("linear_conv_kernel_dim", net.conv_kernel);
}

// Those of a mixture of experts that a scenario may change, by their names in most families' config.json.
template <class Experts, class Visit>
void visit_mixture_sizes(Experts& experts, Visit&& visit) {
  visit("num_experts", experts.num_experts);
  visit("num_experts_per_tok", experts.num_experts_per_tok);
  visit("moe_intermediate_size", experts.intermediate_size);
}

// Those of the MLP, of which there may be none beside experts, and of the attention.
template <class Kind, class Visit>
void visit_layer_sizes(Kind& kind, Visit&& visit) {
  if (!kind.experts || kind.mlp.intermediate_size > 0) visit("intermediate_size", kind.mlp.intermediate_size);
  std::visit([&visit](auto& attention) { visit_attention_sizes(attention, visit); }, kind.attention);
}

template <class Experts, class Visit>
void visit_expert_sizes(Experts& experts, Visit&& visit) {
  visit("num_experts", experts.num_experts);
  visit("num_experts_per_tok", experts.num_experts_per_tok);
  visit("intermediate_size", experts.intermediate_size);
  visit("num_groups", experts.num_groups);
  visit("groups_per_tok", experts.groups_per_tok);
}

template <class Experts, class Visit>
void visit_expert_flags(Experts& experts, Visit&& visit) {
  visit("correction_bias", experts.correction_bias);
  visit("bias", experts.bias);
  visit("shared_gate", experts.shared_gate);
  visit("by_token_id", experts.by_token_id);
  visit("own_norms", experts.own_norms);
}

// The same for what is true or false, and false by default.
template <class Shape, class Visit>
void visit_model_flags(Shape& model, Visit&& visit) {
  visit("embedding_norm", model.embedding_norm);
  visit("unit_offset_norms", model.unit_offset_norms);
  visit("quantized_lm_head", model.quantized_lm_head);
  visit("plain_attention", model.plain.attention);
  visit("plain_mlp", model.plain.mlp);
  visit("plain_shared_experts", model.plain.shared_experts);
  visit("plain_experts", model.plain.experts);
}

template <class Kind, class Visit>
void visit_layer_flags(Kind& kind, Visit&& visit) {
  if (auto* attention = std::get_if<Gqa>(&kind.attention)) {
    visit("qkv_bias", attention->qkv_bias);
    visit("attention_output_bias", attention->output_bias);
    visit("in_chunks", attention->in_chunks);
    visit("sinks", attention->sinks);
    visit("output_gate", attention->output_gate);
    visit("shares_kv", attention->shares_kv);
    visit("k_eq_v", attention->k_eq_v);
    visit("v_norm", attention->v_norm);
  }
  if (auto* attention = std::get_if<Mla>(&kind.attention)) visit("attention_bias", attention->bias);
  visit("mlp_bias", kind.mlp.bias);
}

// Words for what tells families of models apart.
template <class T, std::size_t N>
using Words = std::array<std::pair<std::string_view, T>, N>;

inline constexpr Words<MlpKind, 2> kMlps{{{"gated", MlpKind::gated}, {"plain", MlpKind::plain}}};
inline constexpr Words<ActivationKind, 4> kActivations{{{"silu", ActivationKind::silu},
                                                        {"gelu", ActivationKind::gelu},
                                                        {"gelu_tanh", ActivationKind::gelu_tanh},
                                                        {"relu", ActivationKind::relu}}};
inline constexpr Words<NormKind, 2> kNorms{{{"rms_norm", NormKind::rms_norm}, {"layer_norm", NormKind::layer_norm}}};
inline constexpr Words<BlockKind, 3> kBlocks{{{"sequential", BlockKind::sequential},
                                              {"parallel", BlockKind::parallel},
                                              {"parallel_two_norms", BlockKind::parallel_two_norms}}};
inline constexpr Words<PositionKind, 3> kPositions{
    {{"rope", PositionKind::rope}, {"alibi", PositionKind::alibi}, {"none", PositionKind::none}}};
inline constexpr Words<RopePairs, 2> kRopePairs{{{"halves", RopePairs::halves}, {"neighbours", RopePairs::neighbours}}};
enum class AttentionWord : std::uint8_t { gqa, mla, gated_delta_net, compressed };  // as in Attention
inline constexpr Words<AttentionWord, 4> kAttentions{{{"gqa", AttentionWord::gqa},
                                                      {"mla", AttentionWord::mla},
                                                      {"gated_delta_net", AttentionWord::gated_delta_net},
                                                      {"compressed", AttentionWord::compressed}}};
inline constexpr Words<ExpertScoring, 3> kScorings{{{"softmax", ExpertScoring::softmax},
                                                    {"sigmoid", ExpertScoring::sigmoid},
                                                    {"sqrt_softplus", ExpertScoring::sqrt_softplus}}};
inline constexpr Words<QkNorm, 4> kQkNorms{{{"none", QkNorm::none},
                                            {"per_head", QkNorm::per_head},
                                            {"unweighted", QkNorm::unweighted},
                                            {"whole", QkNorm::whole}}};
inline constexpr Words<NormPlacement, 3> kNormPlacements{
    {{"pre", NormPlacement::pre}, {"post", NormPlacement::post}, {"sandwich", NormPlacement::sandwich}}};
inline constexpr Words<RopeScalingKind, 5> kRopeScalings{{{"none", RopeScalingKind::none},
                                                          {"linear", RopeScalingKind::linear},
                                                          {"llama3", RopeScalingKind::llama3},
                                                          {"yarn", RopeScalingKind::yarn},
                                                          {"longrope", RopeScalingKind::longrope}}};

template <class T, std::size_t N>
[[nodiscard]] constexpr std::string_view word_of(const Words<T, N>& words, T value) {
  for (const auto& [text, each] : words)
    if (each == value) return text;
  return "";
}

}  // namespace dculab::config
