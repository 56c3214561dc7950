// The keys of a model in a trace: its sizes, and its kinds of layers. Those that tell a family from Llama are absent
// where they say nothing.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>
#include <variant>

#include "config/model_sizes.hpp"

namespace dculab::config {

inline constexpr int kMostSharingDevices = 1 << 16;  // that share a model
inline constexpr Bounds kSharingDevices = between(1, kMostSharingDevices);

inline constexpr auto kMlps = std::to_array<Choice<MlpKind>>({{"gated", MlpKind::gated}, {"plain", MlpKind::plain}});
inline constexpr auto kActivations = std::to_array<Choice<ActivationKind>>({{"silu", ActivationKind::silu},
                                                                            {"gelu", ActivationKind::gelu},
                                                                            {"gelu_tanh", ActivationKind::gelu_tanh},
                                                                            {"relu", ActivationKind::relu}});
inline constexpr auto kNorms =
    std::to_array<Choice<NormKind>>({{"rms_norm", NormKind::rms_norm}, {"layer_norm", NormKind::layer_norm}});
inline constexpr auto kBlocks =
    std::to_array<Choice<BlockKind>>({{"sequential", BlockKind::sequential},
                                      {"parallel", BlockKind::parallel},
                                      {"parallel_two_norms", BlockKind::parallel_two_norms}});
inline constexpr auto kPositions = std::to_array<Choice<PositionKind>>(
    {{"rope", PositionKind::rope}, {"alibi", PositionKind::alibi}, {"none", PositionKind::none}});
inline constexpr auto kRopePairs =
    std::to_array<Choice<RopePairs>>({{"halves", RopePairs::halves}, {"neighbours", RopePairs::neighbours}});
inline constexpr auto kScorings =
    std::to_array<Choice<ExpertScoring>>({{"softmax", ExpertScoring::softmax},
                                          {"sigmoid", ExpertScoring::sigmoid},
                                          {"sqrt_softplus", ExpertScoring::sqrt_softplus}});
inline constexpr auto kQkNorms = std::to_array<Choice<QkNorm>>({{"none", QkNorm::none},
                                                                {"per_head", QkNorm::per_head},
                                                                {"unweighted", QkNorm::unweighted},
                                                                {"whole", QkNorm::whole}});
inline constexpr auto kNormPlacements = std::to_array<Choice<NormPlacement>>(
    {{"pre", NormPlacement::pre}, {"post", NormPlacement::post}, {"sandwich", NormPlacement::sandwich}});
inline constexpr auto kRopeScalings = std::to_array<Choice<RopeScalingKind>>({{"none", RopeScalingKind::none},
                                                                              {"linear", RopeScalingKind::linear},
                                                                              {"llama3", RopeScalingKind::llama3},
                                                                              {"yarn", RopeScalingKind::yarn},
                                                                              {"longrope", RopeScalingKind::longrope}});

struct RopeScalingKeys {
  using Target = RopeScaling;
  static constexpr KeyTraits kPositive{.bounds = above(0)};
  static constexpr KeyTraits kRequiredPositive{.bounds = above(0), .necessity = Necessity::required};
  static constexpr auto keys = std::tuple(
      word("kind", &RopeScaling::kind, kRopeScalings, "the rule", {.necessity = Necessity::required}),
      value("factor", &RopeScaling::factor, "by which frequencies are divided", kRequiredPositive),
      value("low_freq_factor", &RopeScaling::low_freq_factor, "`llama3`: bound below which frequencies are divided",
            kRequiredPositive),
      value("high_freq_factor", &RopeScaling::high_freq_factor, "`llama3`: bound above which frequencies stay",
            kRequiredPositive),
      value("original_max_position_embeddings", &RopeScaling::original_max_position_embeddings,
            "context that the model was trained with", kRequiredSize),
      value("beta_fast", &RopeScaling::beta_fast, "`yarn`: turns in that context from which a frequency stays",
            kPositive),
      value("beta_slow", &RopeScaling::beta_slow, "`yarn`: turns up to which it is divided by the factor", kPositive),
      value("truncate", &RopeScaling::truncate, "`yarn`: the bounds between them are whole planes"),
      value("attention_factor", &RopeScaling::attention_factor, "by which cosines and sines are multiplied", kPositive),
      value("short_factor", &RopeScaling::short_factor, "`longrope`: one for each plane",
            {.bounds = above(0), .absent = "none"}));
};

struct PositionKeys {
  using Target = Position;
  static constexpr auto keys =
      std::tuple(word("position", &Position::kind, kPositions, "how attention learns where a token stands"),
                 value("alibi_scale", &Position::alibi_scale, "of ALiBi's slopes", {.bounds = above(0)}),
                 value("rotary_dim", &Position::rotary_dim, "values of a head that are rotated, its first",
                       {.bounds = between(2, kLargestModelField), .absent = "all"}),
                 word("rope_pairs", &Position::pairs, kRopePairs, "which values of a head are rotated together"),
                 value("rope_theta", &Position::rope_theta, "base of the angles",
                       {.bounds = above(0), .necessity = Necessity::required}),
                 section<RopeScalingKeys>("rope_scaling", &Position::rope_scaling,
                                          "of contexts beyond the one of training", {.absent = "none"}));
};

struct GqaKeys {
  using Target = Gqa;
  static constexpr auto keys = std::tuple(
      inlined<AttentionSizes<Gqa>>([](auto& gqa) -> auto& { return gqa; }),
      value("qkv_bias", &Gqa::qkv_bias, "Q, K and V have a bias"),
      value("attention_output_bias", &Gqa::output_bias, "the output's projection has a bias"),
      value("sliding_window", &Gqa::sliding_window, "tokens that a token sees, itself the last",
            {.bounds = between(1, kLargestModelField), .absent = "all"}),
      value("in_chunks", &Gqa::in_chunks, "a token sees those of its own chunk of `sliding_window` tokens: Llama 4"),
      word("qk_norm", &Gqa::qk_norm, kQkNorms, "RMS norms of queries and keys before they are rotated"),
      value("query_scalar", &Gqa::query_scalar, "scores are divided by its root",
            {.bounds = above(0), .absent = "`head_dim`"}),
      value("logit_soft_cap", &Gqa::logit_soft_cap, "scores become cap * tanh(score / cap)",
            {.bounds = above(0), .absent = "none"}),
      value("sinks", &Gqa::sinks, "each query head has a score beside those of tokens: gpt-oss"),
      value("output_gate", &Gqa::output_gate, "the output is multiplied by a gate: Qwen3-Next"),
      value("shares_kv", &Gqa::shares_kv, "K and V are those of the layer that `kv_sources` names"),
      value("k_eq_v", &Gqa::k_eq_v, "V is what K's projection gives: Gemma 4"),
      value("v_norm", &Gqa::v_norm, "V's heads have a norm without weights: Gemma 4"),
      inlined<PositionKeys>([](auto& gqa) -> auto& { return gqa.position; }));
};

struct MlaKeys {
  using Target = Mla;
  static constexpr auto keys =
      std::tuple(inlined<AttentionSizes<Mla>>([](auto& mla) -> auto& { return mla; }),
                 value("q_lora_rank", &Mla::q_lora_rank, "values of the queries' latent", kOptionalSize),
                 value("score_factor", &Mla::score_factor, "by which scores are multiplied", {.bounds = above(0)}),
                 value("attention_bias", &Mla::bias, "projections from the hidden state and the output's have a bias"),
                 inlined<PositionKeys>([](auto& mla) -> auto& { return mla.position; }));
};

struct CompressedKeys {
  using Target = CompressedAttention;
  static constexpr auto keys =
      std::tuple(inlined<AttentionSizes<CompressedAttention>>([](auto& entries) -> auto& { return entries; }),
                 value("compress_ratio", &Target::compress_ratio, "tokens of a compressed entry", kOptionalSize),
                 value("index_n_heads", &Target::index_n_heads, "heads of the indexer", kOptionalSize),
                 value("index_head_dim", &Target::index_head_dim, "values of such a head", kOptionalSize),
                 value("index_topk", &Target::index_topk, "entries that the indexer lets a token see", kOptionalSize),
                 inlined<PositionKeys>([](auto& entries) -> auto& { return entries.position; }));
};

struct ExpertPartKeys {
  using Target = ExpertPart;
  static constexpr KeyTraits kCount{.bounds = kSharingDevices, .necessity = Necessity::required};
  static constexpr auto keys = std::tuple(
      value("devices", &ExpertPart::devices, "that share the routed experts",
            {.bounds = between(2, kMostSharingDevices), .necessity = Necessity::required}),
      value("devices_per_node", &ExpertPart::devices_per_node, "devices of these in a node", kCount),
      value("attention_devices", &ExpertPart::attention_devices, "devices that hold the same tokens", kCount),
      value("rows_per_token", &ExpertPart::rows_per_token, "copies of experts that a token goes to, of all devices",
            {.bounds = above(0), .necessity = Necessity::required}),
      value("copies", &ExpertPart::copies,
            "for each copy that this device has: the probability that a token goes there",
            {.bounds = between(0, 1), .necessity = Necessity::required}),
      value("other_nodes", &ExpertPart::other_nodes, "nodes that a token goes to beside its own, on average",
            {.bounds = between(0, kMostSharingDevices)}),
      value("dispatch_dtype", &ExpertPart::dispatch_dtype, "of tokens that are sent",
            {.necessity = Necessity::required}));
  static void check(MapReader& reader, ExpertPart& part);
};

struct ExpertsKeys {
  using Target = Experts;
  static constexpr auto keys = std::tuple_cat(
      kExpertCounts,
      std::tuple(
          value("intermediate_size", &Experts::intermediate_size, "width of an expert", kRequiredSize),
          value("num_groups", &Experts::num_groups, "groups of experts", kRequiredSize),
          value("groups_per_tok", &Experts::groups_per_tok, "of them that a token goes to", kRequiredSize),
          value("correction_bias", &Experts::correction_bias, "a bias decides which experts are chosen, and no more"),
          value("bias", &Experts::bias, "router and experts have a bias"),
          value("shared_gate", &Experts::shared_gate, "shared experts have a gate"),
          value("by_token_id", &Experts::by_token_id, "a table says the experts of each token: DeepSeek-V4"),
          value("own_norms", &Experts::own_norms, "experts and router have norms of their own: Gemma 4"),
          word("activation", &Experts::activation, kActivations, "of an expert"),
          word("scoring", &Experts::scoring, kScorings, "how the router's logits become weights"),
          value("normalized", &Experts::normalized, "the weights of a token's experts add up to 1"),
          value("scaling", &Experts::scaling, "by which they are multiplied", {.bounds = above(0)}),
          section<ExpertPartKeys>("part", &Experts::part, "in expert parallelism: what this device has",
                                  {.absent = "all of them"})));
};

enum class AttentionWord : std::uint8_t { gqa, mla, gated_delta_net, compressed };  // as in Attention
inline constexpr auto kAttentions =
    std::to_array<Choice<AttentionWord>>({{"gqa", AttentionWord::gqa},
                                          {"mla", AttentionWord::mla},
                                          {"gated_delta_net", AttentionWord::gated_delta_net},
                                          {"compressed", AttentionWord::compressed}});
void read_attention(MapReader& reader, const Node& node, LayerKind& kind);
[[nodiscard]] nlohmann::ordered_json write_attention(const LayerKind& kind);

template <class Attention>
inline constexpr auto attention_of = [](auto& kind) { return std::get_if<Attention>(&kind.attention); };

// Read in this order: `attention` and `experts` decide which keys there may be.
struct LayerKindKeys {
  using Target = LayerKind;
  static constexpr std::string_view kByAttention = "required by its attention";
  static constexpr auto mlp_size = [](auto& kind) -> auto& { return kind.mlp.intermediate_size; };
  // Beside experts it may be absent: there need be no shared ones.
  struct DenseSize {
    using Target = LayerKind;
    static constexpr auto keys =
        std::tuple(value("intermediate_size", mlp_size, "width of the MLP, or of the shared experts", kRequiredSize));
  };
  struct SharedSize {
    using Target = LayerKind;
    static constexpr auto keys = std::tuple(value("intermediate_size", mlp_size, "", kOptionalSize));
  };
  static constexpr auto keys = std::tuple(
      shaped("attention", read_attention, write_attention,
             {.words = one_of("gqa", "mla", "gated_delta_net", "compressed")}, "its kind", {.absent = "`gqa`"}),
      section<ExpertsKeys>("experts", &LayerKind::experts, "a mixture of experts", {.absent = "none"}),
      inlined<DenseSize>([](auto& kind) { return kind.experts ? nullptr : &kind; }, "required without `experts`"),
      inlined<SharedSize>([](auto& kind) { return kind.experts ? &kind : nullptr; }),
      word("mlp", [](auto& kind) -> auto& { return kind.mlp.kind; }, kMlps, "`gated` has three matrices, `plain` two",
           {.necessity = Necessity::required}),
      word(
          "activation", [](auto& kind) -> auto& { return kind.mlp.activation; }, kActivations, "of the MLP"),
      value(
          "mlp_bias", [](auto& kind) -> auto& { return kind.mlp.bias; }, "the MLP's matrices have a bias"),
      word("block", &LayerKind::block, kBlocks, "how attention and MLP follow each other"),
      word("norms", &LayerKind::norms, kNormPlacements, "where their norms stand"),
      inlined<GqaKeys>(attention_of<Gqa>, kByAttention), inlined<MlaKeys>(attention_of<Mla>, kByAttention),
      inlined<CompressedKeys>(attention_of<CompressedAttention>, kByAttention),
      inlined<AttentionSizes<GatedDeltaNet>>(attention_of<GatedDeltaNet>, kByAttention));
};

// These are read after num_hidden_layers.
void read_num_layers(MapReader& reader, const Node& node, ModelShape& model);
void read_layer_kinds(MapReader& reader, const Node& node, ModelShape& model);
void read_layers(MapReader& reader, const Node& node, ModelShape& model);
[[nodiscard]] nlohmann::ordered_json write_num_layers(const ModelShape& model);
[[nodiscard]] nlohmann::ordered_json write_layer_kinds(const ModelShape& model);
[[nodiscard]] nlohmann::ordered_json write_layers(const ModelShape& model);

struct ModelKeys {
  using Target = ModelShape;
  static constexpr KeyTraits kNeeded{.necessity = Necessity::required};
  static constexpr auto keys = std::tuple_cat(
      std::tuple(value("name", &ModelShape::name, "for reports", kNeeded)), ModelSizes::keys,
      std::tuple(
          value("embedding_norm", &ModelShape::embedding_norm, "a norm before the first layer: BLOOM"),
          value("unit_offset_norms", &ModelShape::unit_offset_norms, "norms multiply by 1 + weight: Gemma"),
          value("quantized_lm_head", &ModelShape::quantized_lm_head, "`lm_head` is quantized too"),
          value(
              "plain_attention", [](auto& model) -> auto& { return model.plain.attention; },
              "of what is quantized, attention is left in `dtype`"),
          value(
              "plain_mlp", [](auto& model) -> auto& { return model.plain.mlp; }, "the same of MLPs"),
          value(
              "plain_shared_experts", [](auto& model) -> auto& { return model.plain.shared_experts; },
              "the same of shared experts"),
          value(
              "plain_experts", [](auto& model) -> auto& { return model.plain.experts; }, "the same of routed experts"),
          value("tie_word_embeddings", &ModelShape::tie_word_embeddings, "`lm_head` is the embedding", kNeeded),
          word("norm", &ModelShape::norm, kNorms, "kind of norm in all layers"),
          value("learned_positions", &ModelShape::learned_positions, "rows of an embedding of positions: OPT",
                kOptionalSize),
          value("embedding_scale", &ModelShape::embedding_scale, "by which embeddings are multiplied: Gemma",
                {.bounds = above(0)}),
          value("final_logit_soft_cap", &ModelShape::final_logit_soft_cap, "logits become cap * tanh(logit / cap)",
                {.bounds = above(0), .absent = "none"}),
          value("residual_streams", &ModelShape::residual_streams,
                "residual streams, mixed before and after each half of a layer: DeepSeek-V4",
                {.bounds = between(2, kLargestModelField), .absent = "1"}),
          value("sinkhorn_iterations", &ModelShape::sinkhorn_iterations, "iterations that make the mixing matrix",
                kOptionalSize),
          value("tensor_parallel_size", &ModelShape::tensor_parallel_size,
                "devices that share every layer; all sizes are those of a part",
                {.bounds = between(2, kMostSharingDevices), .absent = "1"}),
          value("dtype", &ModelShape::dtype, "of weights that are not quantized", kNeeded),
          value("rms_norm_eps", &ModelShape::norm_eps, "epsilon of the norms",
                {.bounds = above(0), .necessity = Necessity::required}),
          shaped(kLayersField, read_num_layers, write_num_layers, {.is_whole = true}, "layers",
                 {.bounds = between(1, kMostLayers), .necessity = Necessity::required}),
          shaped<LayerKindKeys>("layer_kinds", read_layer_kinds, write_layer_kinds, {.must_be_list = true},
                                "what layers of each kind are made of", kNeeded),
          shaped("layers", read_layers, write_layers, {.is_whole = true, .must_be_list = true},
                 "the kind of each layer: an index of `layer_kinds`", {.bounds = at_least(0), .absent = "one kind"}),
          value("kv_sources", &ModelShape::kv_sources, "the layer whose K and V each layer reads",
                {.bounds = at_least(0), .absent = "its own"})));
  static void check(MapReader& reader, ModelShape& model);
};

}  // namespace dculab::config
