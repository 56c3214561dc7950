#include "config/trace_model.hpp"

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/model_fields.hpp"
#include "config/trace_experts.hpp"

namespace dculab::config {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostKinds = std::numeric_limits<std::uint8_t>::max();

RopeScaling read_rope_scaling(MapReader reader) {
  RopeScaling scaling;
  reader.required("kind", scaling.kind, kRopeScalings);
  reader.required("factor", scaling.factor, above(0));
  reader.required("low_freq_factor", scaling.low_freq_factor, above(0));
  reader.required("high_freq_factor", scaling.high_freq_factor, above(0));
  reader.required("original_max_position_embeddings", scaling.original_max_position_embeddings,
                  between(1, kLargestModelField));
  reader.optional("beta_fast", scaling.beta_fast, above(0));
  reader.optional("beta_slow", scaling.beta_slow, above(0));
  reader.optional("truncate", scaling.truncate);
  reader.optional("attention_factor", scaling.attention_factor, above(0));
  if (const Node* node = reader.optional("short_factor")) reader.read(*node, scaling.short_factor, above(0));
  reader.finish();
  return scaling;
}

void read_position(MapReader& reader, Position& position) {
  reader.optional("position", position.kind, kPositions);
  reader.optional("rotary_dim", position.rotary_dim, between(2, kLargestModelField));
  reader.optional("rope_pairs", position.pairs, kRopePairs);
  reader.optional("alibi_scale", position.alibi_scale, above(0));
  reader.required("rope_theta", position.rope_theta, above(0));
  if (reader.optional("rope_scaling") != nullptr)
    position.rope_scaling = read_rope_scaling(reader.optional_map("rope_scaling"));
}

void read_attention(MapReader& reader, Gqa& attention) {
  reader.optional("sliding_window", attention.sliding_window, between(1, kLargestModelField));
  reader.optional("qk_norm", attention.qk_norm, kQkNorms);
  reader.optional("query_scalar", attention.query_scalar, above(0));
  reader.optional("logit_soft_cap", attention.logit_soft_cap, above(0));
  read_position(reader, attention.position);
}

void read_attention(MapReader& reader, Mla& attention) {
  reader.optional("q_lora_rank", attention.q_lora_rank, between(1, kLargestModelField));
  reader.optional("score_factor", attention.score_factor, above(0));
  read_position(reader, attention.position);
}

void read_attention(MapReader& /*reader*/, GatedDeltaNet& /*net*/) {}

void read_attention(MapReader& reader, CompressedAttention& attention) {
  visit_entry_sizes(attention, [&reader](std::string_view key, int& value) {
    reader.optional(key, value, between(1, kLargestModelField));
  });
  read_position(reader, attention.position);
}

void read_layer_kind(MapReader& reader, LayerKind& kind) {
  AttentionWord word = AttentionWord::gqa;
  reader.optional("attention", word, kAttentions);
  if (word == AttentionWord::mla) kind.attention = Mla{};
  if (word == AttentionWord::gated_delta_net) kind.attention = GatedDeltaNet{};
  if (word == AttentionWord::compressed) kind.attention = CompressedAttention{};
  if (reader.optional("experts") != nullptr) kind.experts = read_trace_experts(reader.optional_map("experts"));
  visit_layer_sizes(kind, [&reader](std::string_view key, int& value) {
    reader.required(key, value, between(1, kLargestModelField));
  });
  if (kind.experts) reader.optional("intermediate_size", kind.mlp.intermediate_size, between(1, kLargestModelField));
  visit_layer_flags(kind, [&reader](std::string_view key, bool& value) { reader.optional(key, value); });
  reader.required("mlp", kind.mlp.kind, kMlps);
  reader.optional("activation", kind.mlp.activation, kActivations);
  reader.optional("block", kind.block, kBlocks);
  reader.optional("norms", kind.norms, kNormPlacements);
  std::visit([&reader](auto& attention) { read_attention(reader, attention); }, kind.attention);
}

// Which kind each layer is; absent where there is one kind.
void read_layers(MapReader& reader, ModelShape& model) {
  const Node* node = model.kinds.size() > 1 ? reader.required("layers") : reader.optional("layers");
  if (node == nullptr) return;
  std::vector<int> kinds;
  reader.read(*node, kinds, between(0, static_cast<double>(model.kinds.size()) - 1));
  if (kinds.size() != model.layers.size())
    return reader.complain(*node, "layers: must have as many entries as num_hidden_layers");
  model.layers.assign(kinds.begin(), kinds.end());
}

// The layer whose K and V each reads; absent where each has its own.
void read_kv_sources(MapReader& reader, ModelShape& model) {
  const Node* node = reader.optional("kv_sources");
  if (node == nullptr) return;
  reader.read(*node, model.kv_sources, between(0, static_cast<double>(model.layers.size()) - 1));
  if (model.kv_sources.size() != model.layers.size())
    reader.complain(*node, "kv_sources: must have as many entries as num_hidden_layers");
}

void read_layer_kinds(MapReader& reader, ModelShape& model) {
  const Node* list = reader.required("layer_kinds");
  if (list == nullptr) return;
  if (list->kind != NodeKind::list || list->children.empty() || list->children.size() > kMostKinds)
    return reader.complain(*list,
                           "layer_kinds: must be a list of kinds of layers, at most " + std::to_string(kMostKinds));
  model.kinds.clear();
  for (const Node& each : list->children) {
    MapReader fields(&each, "layer_kinds", reader.problems());
    read_layer_kind(fields, model.kinds.emplace_back());
    fields.finish();
  }
  read_layers(reader, model);
  read_kv_sources(reader, model);
}

Json rope_scaling_json(const RopeScaling& scaling) {
  Json json{{"kind", word_of(kRopeScalings, scaling.kind)},
            {"factor", scaling.factor},
            {"low_freq_factor", scaling.low_freq_factor},
            {"high_freq_factor", scaling.high_freq_factor},
            {"original_max_position_embeddings", scaling.original_max_position_embeddings}};
  if (scaling.kind == RopeScalingKind::yarn)
    json.update({{"beta_fast", scaling.beta_fast}, {"beta_slow", scaling.beta_slow}, {"truncate", scaling.truncate}});
  if (scaling.kind == RopeScalingKind::longrope) json["short_factor"] = scaling.short_factor;
  if (scaling.attention_factor != 1.0) json["attention_factor"] = scaling.attention_factor;
  return json;
}

void add_position(Json& json, const Position& position) {
  if (position.rotary_dim > 0) json["rotary_dim"] = position.rotary_dim;
  if (position.pairs != RopePairs::halves) json["rope_pairs"] = word_of(kRopePairs, position.pairs);
  json["rope_theta"] = position.rope_theta;
  if (position.rope_scaling.kind != RopeScalingKind::none)
    json["rope_scaling"] = rope_scaling_json(position.rope_scaling);
}

void add_attention(Json& json, const LayerKind& kind, const Gqa& attention) {
  if (attention.sliding_window != 0) json["sliding_window"] = attention.sliding_window;
  if (attention.qk_norm != QkNorm::none) json["qk_norm"] = word_of(kQkNorms, attention.qk_norm);
  if (kind.norms != NormPlacement::pre) json["norms"] = word_of(kNormPlacements, kind.norms);
  if (attention.query_scalar > 0) json["query_scalar"] = attention.query_scalar;
  if (attention.logit_soft_cap > 0) json["logit_soft_cap"] = attention.logit_soft_cap;
  add_position(json, attention.position);
}

void add_attention(Json& json, const LayerKind& kind, const Mla& attention) {
  if (kind.norms != NormPlacement::pre) json["norms"] = word_of(kNormPlacements, kind.norms);
  if (attention.q_lora_rank > 0) json["q_lora_rank"] = attention.q_lora_rank;
  if (attention.score_factor != 1.0) json["score_factor"] = attention.score_factor;
  add_position(json, attention.position);
}

void add_attention(Json& json, const LayerKind& kind, const GatedDeltaNet& /*net*/) {
  if (kind.norms != NormPlacement::pre) json["norms"] = word_of(kNormPlacements, kind.norms);
}

void add_attention(Json& json, const LayerKind& kind, const CompressedAttention& attention) {
  if (kind.norms != NormPlacement::pre) json["norms"] = word_of(kNormPlacements, kind.norms);
  visit_entry_sizes(attention, [&json](std::string_view key, int value) {
    if (value > 0) json[std::string(key)] = value;
  });
  add_position(json, attention.position);
}

Json layer_kind_json(const LayerKind& kind) {
  Json json;
  const auto word = static_cast<AttentionWord>(kind.attention.index());
  if (word != AttentionWord::gqa) json["attention"] = word_of(kAttentions, word);
  visit_layer_sizes(kind, [&json](std::string_view key, int value) { json[std::string(key)] = value; });
  if (kind.experts) json["experts"] = trace_experts_json(*kind.experts);
  json["mlp"] = word_of(kMlps, kind.mlp.kind);
  if (kind.mlp.activation != ActivationKind::silu) json["activation"] = word_of(kActivations, kind.mlp.activation);
  if (kind.block != BlockKind::sequential) json["block"] = word_of(kBlocks, kind.block);
  if (kind.has_kv_heads()) {
    const Position& position = kind.gqa().position;
    if (position.kind != PositionKind::rope) json["position"] = word_of(kPositions, position.kind);
    if (position.alibi_scale != 1.0) json["alibi_scale"] = position.alibi_scale;
  }
  visit_layer_flags(kind, [&json](std::string_view key, bool value) {
    if (value) json[std::string(key)] = true;
  });
  std::visit([&](const auto& attention) { add_attention(json, kind, attention); }, kind.attention);
  return json;
}

}  // namespace

void read_trace_model(MapReader reader, TraceSchema schema, ModelShape& model) {
  reader.required("name", model.name);
  visit_model_sizes(model, [&reader](std::string_view key, int& value) {
    reader.required(key, value, between(1, kLargestModelField));
  });
  visit_model_flags(model, [&reader](std::string_view key, bool& value) { reader.optional(key, value); });
  reader.required("tie_word_embeddings", model.tie_word_embeddings);
  reader.optional("norm", model.norm, kNorms);
  reader.optional("learned_positions", model.learned_positions, between(1, kLargestModelField));
  reader.optional("embedding_scale", model.embedding_scale, above(0));
  reader.optional("final_logit_soft_cap", model.final_logit_soft_cap, above(0));
  reader.optional("residual_streams", model.residual_streams, between(2, kLargestModelField));
  reader.optional("sinkhorn_iterations", model.sinkhorn_iterations, between(1, kLargestModelField));
  reader.optional("tensor_parallel_size", model.tensor_parallel_size, between(2, kMostSharingDevices));
  reader.required("dtype", model.dtype);
  reader.required("rms_norm_eps", model.norm_eps, above(0));
  int num_layers = 0;
  reader.required(kLayersField, num_layers, between(1, kMostLayers));
  set_layers(model, num_layers, {});
  if (schema == TraceSchema::one_kind)
    read_layer_kind(reader, model.kinds.front());
  else
    read_layer_kinds(reader, model);
  reader.finish();
}

nlohmann::ordered_json trace_model_json(const ModelShape& model) {
  Json json{{"name", model.name}};
  visit_model_sizes(model, [&json](std::string_view key, int value) { json[std::string(key)] = value; });
  visit_model_flags(model, [&json](std::string_view key, bool value) {
    if (value) json[std::string(key)] = true;
  });
  json["tie_word_embeddings"] = model.tie_word_embeddings;
  if (model.norm != NormKind::rms_norm) json["norm"] = word_of(kNorms, model.norm);
  if (model.learned_positions > 0) json["learned_positions"] = model.learned_positions;
  if (model.embedding_scale != 1.0) json["embedding_scale"] = model.embedding_scale;
  if (model.final_logit_soft_cap > 0) json["final_logit_soft_cap"] = model.final_logit_soft_cap;
  if (model.residual_streams > 1) json["residual_streams"] = model.residual_streams;
  if (model.sinkhorn_iterations > 0) json["sinkhorn_iterations"] = model.sinkhorn_iterations;
  if (model.tensor_parallel_size > 1) json["tensor_parallel_size"] = model.tensor_parallel_size;
  json["dtype"] = name(model.dtype);
  json["rms_norm_eps"] = model.norm_eps;
  json[std::string(kLayersField)] = model.num_layers();
  Json kinds = Json::array();
  for (const LayerKind& kind : model.kinds) kinds.push_back(layer_kind_json(kind));
  json["layer_kinds"] = std::move(kinds);
  if (model.kinds.size() > 1) json["layers"] = model.layers;
  if (!model.kv_sources.empty()) json["kv_sources"] = model.kv_sources;
  return json;
}

}  // namespace dculab::config
