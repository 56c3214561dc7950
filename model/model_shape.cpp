#include "model/model_shape.hpp"

#include <algorithm>
#include <utility>

#include "model/weight_shapes.hpp"

namespace dculab {

int ModelShape::num_layers(std::size_t kind) const {
  return static_cast<int>(std::ranges::count(layers, static_cast<std::uint8_t>(kind)));
}

Heads ModelShape::heads() const {
  for (const LayerKind& kind : kinds)
    if (const auto heads = kind.cached_heads()) return *heads;
  return {};
}

std::vector<int> ModelShape::possible_kv_heads() const {
  if (has_latents() || has_unequal_heads()) return {heads().num_key_value_heads};
  std::vector<int> possible;
  const int query_heads = heads().num_attention_heads;
  for (int count = query_heads; count >= 1; --count)
    if (query_heads % count == 0) possible.push_back(count);
  return possible;
}

bool ModelShape::has_latents() const {
  return std::ranges::any_of(
      kinds, [](const LayerKind& kind) { return kind.mla() != nullptr || kind.compressed() != nullptr; });
}

bool ModelShape::has_experts() const {
  return std::ranges::any_of(kinds, [](const LayerKind& kind) { return kind.experts.has_value(); });
}

bool ModelShape::has_compressed_entries() const {
  return std::ranges::any_of(kinds, [](const LayerKind& kind) { return kind.compressed() != nullptr; });
}

bool ModelShape::has_unequal_heads() const {
  const auto differs = [own = heads()](const LayerKind& kind) {
    return kind.has_kv_heads() && (kind.gqa().heads != own || !kind.gqa().group_sizes.empty());
  };
  return std::ranges::any_of(kinds, differs);
}

bool ModelShape::has_delta_nets() const {
  return std::ranges::any_of(kinds, [](const LayerKind& kind) { return kind.delta_net() != nullptr; });
}

bool ModelShape::has_alibi() const {
  return std::ranges::any_of(kinds, [](const LayerKind& kind) {
    return kind.has_kv_heads() && kind.gqa().position.kind == PositionKind::alibi;
  });
}

WeightFormat ModelShape::slot_format(WeightSlot slot, const LayerKind& kind, WeightFormat layers_format) const {
  const auto is_plain = [&] {
    switch (slot) {
      case WeightSlot::router:
      case WeightSlot::shared_gate:
      case WeightSlot::compress_proj:
      case WeightSlot::streams:
        return true;
      case WeightSlot::expert_up_proj:
      case WeightSlot::expert_down_proj:
        return plain.experts;
      case WeightSlot::up_proj:
      case WeightSlot::down_proj:
        return kind.experts ? plain.shared_experts : plain.mlp;
      default:
        return plain.attention;
    }
  };
  const bool is_expert = slot == WeightSlot::expert_up_proj || slot == WeightSlot::expert_down_proj;
  const bool as_stored = quantization && layers_format == *quantization;
  if (is_plain()) return {dtype, 0};
  return is_expert && as_stored ? expert_quantization.value_or(layers_format) : layers_format;
}

std::string kind_label(const ModelShape& model, std::size_t kind) {
  if (model.kinds.size() == 1) return {};
  const auto differ = [&model](auto part) {
    return std::ranges::any_of(model.kinds, [&](const LayerKind& each) { return part(each) != part(model.kinds[0]); });
  };
  const auto window = [](const LayerKind& each) { return each.has_kv_heads() ? each.gqa().sliding_window : 0; };
  const auto ratio = [](const LayerKind& each) { return each.compressed() ? each.compressed()->compress_ratio : 0; };
  const auto kv_heads = [](const LayerKind& each) {
    return each.has_kv_heads() ? each.gqa().heads.num_key_value_heads : 0;
  };
  const auto shares_kv = [](const LayerKind& each) { return each.has_kv_heads() && each.gqa().shares_kv; };
  const auto attention = [](const LayerKind& each) { return each.attention.index(); };
  const auto is_mixture = [](const LayerKind& each) { return each.experts.has_value(); };
  const auto by_token_id = [](const LayerKind& each) { return each.experts && each.experts->by_token_id; };
  const LayerKind& own = model.kinds[kind];
  std::string label;
  const auto add = [&label](const std::string& part) { label += (label.empty() ? "" : ", ") + part; };
  if (own.compressed() != nullptr)
    add(ratio(own) == 0 ? "window " + std::to_string(own.compressed()->sliding_window)
                        : "entries of " + std::to_string(ratio(own)) + " tokens");
  else if (differ(attention) && !own.has_kv_heads())
    add(own.mla() != nullptr ? "latent attention" : "gated delta net");
  else if (differ(attention) || differ(window))
    add(window(own) == 0 ? "full attention"
                         : (own.gqa().in_chunks ? "chunks of " : "window ") + std::to_string(window(own)));
  if (differ(kv_heads) && own.has_kv_heads()) add(std::to_string(kv_heads(own)) + " KV heads");
  if (differ(shares_kv)) add(shares_kv(own) ? "an earlier layer's KV" : "own KV");
  if (differ(is_mixture)) add(own.experts ? "experts" : "dense MLP");
  if (differ(by_token_id)) add(by_token_id(own) ? "experts by token" : "experts by score");
  return label.empty() ? "kind " + std::to_string(kind + 1) : label;
}

void set_layers(ModelShape& model, int count, LayerKind kind) {
  model.kinds = {std::move(kind)};
  model.layers.assign(static_cast<std::size_t>(std::max(0, count)), 0);
}

void add_layer(ModelShape& model, const LayerKind& kind) {
  const auto found = std::ranges::find(model.kinds, kind);
  model.layers.push_back(static_cast<std::uint8_t>(found - model.kinds.begin()));
  if (found == model.kinds.end()) model.kinds.push_back(kind);
}

namespace {

[[nodiscard]] ModelShape without_unused_kinds(ModelShape model) {
  const ModelShape before = model;
  model.kinds.clear(), model.layers.clear();
  for (const std::uint8_t kind : before.layers) add_layer(model, before.kinds[kind]);
  return model;
}

}  // namespace

ModelShape with_layers(ModelShape model, int count) {
  const std::size_t own = model.layers.size();
  model.layers.resize(static_cast<std::size_t>(count));
  for (std::size_t layer = own; own > 0 && layer < model.layers.size(); ++layer)
    model.layers[layer] = model.layers[layer - own];
  if (!model.kv_sources.empty()) {
    model.kv_sources.resize(static_cast<std::size_t>(count));
    for (std::size_t layer = own; layer < model.kv_sources.size(); ++layer)
      model.kv_sources[layer] = model.kv_sources[layer - own] + static_cast<int>(own);
  }
  return without_unused_kinds(std::move(model));
}

ModelShape with_kv_heads(ModelShape model, int num_key_value_heads) {
  if (model.has_unequal_heads()) return model;
  for (LayerKind& kind : model.kinds)
    if (kind.has_kv_heads()) kind.gqa().heads.num_key_value_heads = num_key_value_heads;
  return model;
}

bool same_but_for_kv_heads(const ModelShape& a, const ModelShape& b) {
  return a.hidden_size == b.hidden_size && a.vocab_size == b.vocab_size && a.layers == b.layers &&
         with_kv_heads(a, 1).kinds == with_kv_heads(b, 1).kinds;
}

double layer_matrix_values(const ModelShape& model, const LayerKind& kind) {
  double values = 0;
  for (const WeightShape& weight : layer_weights(model, kind)) values += weight.matrix_values();
  return values;
}

Bytes layer_matrix_bytes(const ModelShape& model, const LayerKind& kind, WeightFormat format) {
  Bytes bytes;
  for (const WeightShape& weight : layer_weights(model, kind)) {
    if (!weight.is_matrix() || weight.is_plain) continue;
    WeightFormat own = model.slot_format(weight.slot, kind, format);
    if (own.group_size < 0) own.group_size = weight.columns;
    bytes += weight_storage(own, weight.matrix_values());
  }
  return bytes;
}

double plain_values(const ModelShape& model) {
  double values = 0;
  for (const WeightShape& weight : outer_weights(model)) values += weight.plain_values();
  for (std::size_t kind = 0; kind < model.kinds.size(); ++kind)
    for (const WeightShape& weight : layer_weights(model, model.kinds[kind]))
      values += model.num_layers(kind) * weight.plain_values();
  return values;
}

Bytes weight_footprint(const ModelShape& model, WeightFormat format) {
  const double embedding = static_cast<double>(model.vocab_size) * model.hidden_size;
  const Bytes head = model.tie_word_embeddings ? Bytes() : weight_storage(model.head_format(format), embedding);
  Bytes layers;
  for (std::size_t kind = 0; kind < model.kinds.size(); ++kind)
    layers += layer_matrix_bytes(model, model.kinds[kind], format) * model.num_layers(kind);
  return layers + head + storage(model.dtype, embedding + plain_values(model));
}

}  // namespace dculab
