// What makes a shape unusable.
#include "model/model_problems.hpp"

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <utility>

#include "core/allowed_numbers.hpp"

namespace dculab {
namespace {

using Found = std::vector<ModelProblem>;

// `field` is a key, or a product of two that begins with one.
void require_size(Found& found, const std::string& field, std::int64_t value, int most) {
  const std::string key = field.substr(0, field.find(' '));
  if (value <= 0) found.push_back({{key}, field + " must be positive, not " + std::to_string(value)});
  if (value > most)
    found.push_back({{key}, field + " must be at most " + std::to_string(most) + ", not " + std::to_string(value)});
}

using NamedSizes = std::initializer_list<std::pair<const char*, int>>;

void require_all(Found& found, NamedSizes sizes) {
  for (const auto& [field, value] : sizes) require_size(found, field, value, kLargestModelField);
}

void require_sizes(Found& found, const Gqa& attention) {
  const Heads& heads = attention.heads;
  require_all(found, {{"num_attention_heads", heads.num_attention_heads},
                      {"num_key_value_heads", heads.num_key_value_heads},
                      {"head_dim", heads.head_dim}});
}

void require_sizes(Found& found, const Mla& attention) {
  require_all(found, {{"num_attention_heads", attention.num_attention_heads},
                      {"kv_lora_rank", attention.kv_lora_rank},
                      {"qk_nope_head_dim", attention.qk_nope_head_dim},
                      {"qk_rope_head_dim", attention.qk_rope_head_dim},
                      {"v_head_dim", attention.v_head_dim}});
  if (attention.q_lora_rank < 0 || attention.q_lora_rank > kLargestModelField)
    found.push_back({{"q_lora_rank"}, "q_lora_rank must be 0 or positive"});
}

void require_sizes(Found& found, const GatedDeltaNet& net) {
  require_all(found, {{"linear_num_key_heads", net.num_key_heads},
                      {"linear_num_value_heads", net.num_value_heads},
                      {"linear_key_head_dim", net.key_head_dim},
                      {"linear_value_head_dim", net.value_head_dim},
                      {"linear_conv_kernel_dim", net.conv_kernel}});
}

void require_sizes(Found& found, const CompressedAttention& attention) {
  require_all(found, {{"num_attention_heads", attention.num_attention_heads},
                      {"head_dim", attention.head_dim},
                      {"qk_rope_head_dim", attention.qk_rope_head_dim},
                      {"q_lora_rank", attention.q_lora_rank},
                      {"o_groups", attention.o_groups},
                      {"o_lora_rank", attention.o_lora_rank},
                      {"sliding_window", attention.sliding_window}});
  if (attention.has_indexer())
    require_all(found, {{"index_n_heads", attention.index_n_heads},
                        {"index_head_dim", attention.index_head_dim},
                        {"index_topk", attention.index_topk},
                        {"compress_ratio", attention.compress_ratio}});
}

void require_sizes(Found& found, const LayerKind& kind) {
  if (!kind.experts) require_size(found, "intermediate_size", kind.mlp.intermediate_size, kLargestModelField);
  std::visit([&found](const auto& attention) { require_sizes(found, attention); }, kind.attention);
}

void check_experts(Found& found, const Experts& experts) {
  for (const auto& [field, value] : {std::pair{"num_experts", experts.num_experts},
                                     {"num_experts_per_tok", experts.num_experts_per_tok},
                                     {"moe_intermediate_size", experts.intermediate_size},
                                     {"n_group", experts.num_groups},
                                     {"topk_group", experts.groups_per_tok}})
    require_size(found, field, value,
                 field == std::string_view("moe_intermediate_size") ? kLargestModelField : kMostExperts);
  if (!found.empty()) return;
  const auto text = [](int value) { return std::to_string(value); };
  if (experts.num_experts % experts.num_groups != 0)
    found.push_back(
        {{"n_group"},
         "n_group (" + text(experts.num_groups) + ") does not divide the " + text(experts.num_experts) + " experts"});
  if (experts.groups_per_tok > experts.num_groups)
    found.push_back(
        {{"topk_group"},
         "topk_group (" + text(experts.groups_per_tok) + ") is more than n_group (" + text(experts.num_groups) + ")"});
  else if (experts.num_experts_per_tok > experts.num_experts / experts.num_groups * experts.groups_per_tok)
    found.push_back({{"num_experts_per_tok", "experts_per_token", "top_k_experts"},
                     "num_experts_per_tok (" + text(experts.num_experts_per_tok) + ") is more than the " +
                         text(experts.num_experts / experts.num_groups * experts.groups_per_tok) +
                         " experts to choose from"});
}

void check_rotation(Found& found, const Gqa& attention) {
  const int rotary_dim = attention.rotary_dim();
  const RopeScaling& scaling = attention.position.rope_scaling;
  if (rotary_dim == attention.heads.head_dim && rotary_dim % 2 != 0)
    found.push_back({{"head_dim", "num_attention_heads"}, "head_dim must be even for rotary embedding"});
  else if (rotary_dim % 2 != 0 || rotary_dim > attention.heads.head_dim)
    found.push_back({{"partial_rotary_factor", "rotary_dim", "rotary_pct"},
                     "the part of a head that is rotated, " + std::to_string(rotary_dim) +
                         " values, must be even and no more than head_dim"});
  else if (scaling.kind == RopeScalingKind::longrope && std::ssize(scaling.short_factor) != rotary_dim / 2)
    found.push_back(
        {{"short_factor"},
         "short_factor and long_factor of LongRoPE must have " + std::to_string(rotary_dim / 2) + " entries"});
}

void check_attention(Found& found, const Gqa& attention) {
  const Heads& heads = attention.heads;
  require_size(found, "num_attention_heads * head_dim", std::int64_t{heads.num_attention_heads} * heads.head_dim,
               kLargestModelField);
  const auto& sizes = attention.group_sizes;
  if (!sizes.empty()) {
    if (std::ssize(sizes) != heads.num_key_value_heads || std::ranges::min(sizes) < 1 ||
        std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) != heads.num_attention_heads)
      found.push_back({{"kv_head_queries"},
                       "the query heads of " + std::to_string(heads.num_key_value_heads) +
                           " KV heads must be one or more each, and " + std::to_string(heads.num_attention_heads) +
                           " together"});
  } else if (heads.num_attention_heads % heads.num_key_value_heads != 0)
    found.push_back({{"num_key_value_heads", "num_kv_heads", "multi_query_group_num", "num_attention_heads"},
                     "num_attention_heads (" + std::to_string(heads.num_attention_heads) +
                         ") is not a multiple of num_key_value_heads (" + std::to_string(heads.num_key_value_heads) +
                         "); use " + divisors_of(heads.num_attention_heads)});
  if (attention.position.kind == PositionKind::rope) check_rotation(found, attention);
  if (attention.sliding_window < 0) found.push_back({{"sliding_window"}, "sliding_window must not be negative"});
}

void check_attention(Found& found, const Mla& attention) {
  const std::int64_t heads = attention.num_attention_heads;
  require_size(found, "num_attention_heads * (qk_nope_head_dim + qk_rope_head_dim)", heads * attention.qk_head_dim(),
               kLargestModelField);
  require_size(found, "num_attention_heads * (qk_nope_head_dim + v_head_dim)",
               heads * (std::int64_t{attention.qk_nope_head_dim} + attention.v_head_dim), kLargestModelField);
  require_size(found, "num_attention_heads * (kv_lora_rank + qk_rope_head_dim)", heads * attention.latent_width(),
               kLargestModelField);
  if (attention.qk_rope_head_dim % 2 != 0)
    found.push_back({{"qk_rope_head_dim"}, "qk_rope_head_dim must be even for rotary embedding"});
}

void check_attention(Found& found, const GatedDeltaNet& net) {
  const std::int64_t keys = std::int64_t{net.num_key_heads} * net.key_head_dim,
                     values = std::int64_t{net.num_value_heads} * net.value_head_dim;
  require_size(found, "linear_num_key_heads * linear_key_head_dim", keys, kLargestModelField / 4);
  require_size(found, "linear_num_value_heads * linear_value_head_dim", values, kLargestModelField / 4);
  if (net.num_value_heads % net.num_key_heads != 0)
    found.push_back({{"linear_num_value_heads", "linear_num_key_heads"},
                     "linear_num_value_heads (" + std::to_string(net.num_value_heads) +
                         ") is not a multiple of linear_num_key_heads (" + std::to_string(net.num_key_heads) + ")"});
}

void check_attention(Found& found, const CompressedAttention& attention) {
  const std::int64_t heads = attention.num_attention_heads;
  require_size(found, "num_attention_heads * head_dim", heads * attention.head_dim, kLargestModelField);
  require_size(found, "o_groups * o_lora_rank", std::int64_t{attention.o_groups} * attention.o_lora_rank,
               kLargestModelField);
  require_size(found, "index_n_heads * index_head_dim + 1",
               std::int64_t{attention.index_n_heads} * attention.index_head_dim + 1, kLargestModelField);
  if (heads % attention.o_groups != 0)
    found.push_back({{"o_groups"},
                     "o_groups (" + std::to_string(attention.o_groups) + ") does not divide the " +
                         std::to_string(heads) + " query heads"});
  if (attention.qk_rope_head_dim % 2 != 0 || attention.qk_rope_head_dim > attention.head_dim)
    found.push_back(
        {{"qk_rope_head_dim"}, "qk_rope_head_dim must be even for rotary embedding, and no more than head_dim"});
}

// A layer that reads another's K and V reads those of an earlier layer with its own K, V and heads alike.
void check_kv_sources(Found& found, const ModelShape& model) {
  const auto add = [&found](std::string text) {
    found.push_back({{"kv_source_layers", "num_kv_shared_layers"}, std::move(text)});
  };
  const auto shares = [&model](int layer) {
    return model.layer(layer).has_kv_heads() && model.layer(layer).gqa().shares_kv;
  };
  if (!model.kv_sources.empty() && std::ssize(model.kv_sources) != model.num_layers()) {
    add("there must be a KV source for each layer");
    return;
  }
  for (int layer = 0; layer < model.num_layers(); ++layer) {
    const int source = model.kv_source(layer);
    const std::string which = "layer " + std::to_string(layer) + " reads the KV of layer " + std::to_string(source);
    if (shares(layer) == (source == layer))
      add(shares(layer) ? "layer " + std::to_string(layer) + " has no K and V, and no earlier layer's"
                        : which + ", but has its own");
    else if (source > layer)
      add(which + ", which is not an earlier one");
    else if (source < layer && (!model.layer(source).has_kv_heads() || shares(source)))
      add(which + ", which has none of its own");
    else if (source < layer && model.layer(source).gqa().heads != model.layer(layer).gqa().heads)
      add(which + ", which has other heads");
    if (!found.empty()) return;
  }
}

void check_layers(Found& found, const ModelShape& model) {
  require_size(found, "num_hidden_layers", model.num_layers(), kMostLayers);
  const auto is_known = [&model](std::uint8_t kind) { return kind < model.kinds.size(); };
  if (!std::ranges::all_of(model.layers, is_known)) found.push_back({{}, "layers must be of the kinds that there are"});
  for (std::size_t kind = 0; kind < model.kinds.size(); ++kind)
    if (model.num_layers() > 0 && model.num_layers(kind) == 0)
      found.push_back({{}, "no layer is of kind " + std::to_string(kind + 1)});
  const auto differs = [&model](const LayerKind& kind) { return kind.block != model.kinds.front().block; };
  if (std::ranges::any_of(model.kinds, differs)) found.push_back({{}, "all layers must have the same block"});
  const auto is_mixed = [](const LayerKind& kind) {
    return kind.block != BlockKind::sequential && kind.norms != NormPlacement::pre;
  };
  if (std::ranges::none_of(model.kinds, [](const LayerKind& kind) { return kind.cached_heads().has_value(); }))
    found.push_back({{"layer_types", "full_attention_interval"},
                     "no layer keeps keys or latents: a model needs one with attention"});
  if (std::ranges::any_of(model.kinds, is_mixed))
    found.push_back({{}, "norms after attention and MLP need a block where one follows the other"});
}

}  // namespace

std::vector<ModelProblem> keyed_problems(const ModelShape& model) {
  Found found;
  for (const auto& [field, value] : {std::pair{"hidden_size", model.hidden_size},
                                     {"vocab_size", model.vocab_size},
                                     {"max_position_embeddings", model.max_position_embeddings},
                                     {"hc_mult", model.residual_streams}})
    require_size(found, field, value, kLargestModelField);
  for (const LayerKind& kind : model.kinds) require_sizes(found, kind);
  check_layers(found, model);
  if (!found.empty()) return found;
  if (model.quantized_lm_head && model.tie_word_embeddings)
    found.push_back({{"tie_word_embeddings", "quantization_config"},
                     "lm_head is quantized, but it is the embedding (tie_word_embeddings), which is not"});
  const auto is_plain_block = [](const LayerKind& kind) {
    return kind.block == BlockKind::sequential && kind.norms == NormPlacement::pre;
  };
  if (model.residual_streams > 1 && !std::ranges::all_of(model.kinds, is_plain_block))
    found.push_back({{"hc_mult"}, "residual streams need layers whose MLP follows attention, each after a norm"});
  const PlainParts& plain = model.plain;
  const bool mixes = model.has_experts();
  if (model.quantization && plain.attention && plain.mlp && (!mixes || (plain.experts && plain.shared_experts)))
    found.push_back({{"quantization_config"},
                     std::string("quantization_config leaves all matrices of the layers as they are") +
                         (mixes ? "" : ", for there are no experts")});
  require_size(found, "hc_mult * hidden_size", std::int64_t{model.residual_streams} * model.hidden_size,
               kLargestModelField);
  for (const LayerKind& kind : model.kinds)
    std::visit([&found](const auto& attention) { check_attention(found, attention); }, kind.attention);
  if (found.empty()) check_kv_sources(found, model);
  for (const LayerKind& kind : model.kinds)
    if (kind.experts) check_experts(found, *kind.experts);
  return found;
}

std::vector<std::string> problems(const ModelShape& model) {
  std::vector<std::string> texts;
  for (ModelProblem& problem : keyed_problems(model)) texts.push_back(std::move(problem.text));
  return texts;
}

}  // namespace dculab
