#include "config/trace_model_keys.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "config/key_writer.hpp"

namespace dculab::config {

using Json = nlohmann::ordered_json;

void ExpertPartKeys::check(MapReader& reader, ExpertPart& part) {
  const Node* copies = reader.optional("copies");
  if (copies != nullptr && part.copies.empty()) reader.complain(*copies, "copies: must not be empty");
}

void read_attention(MapReader& reader, const Node& node, LayerKind& kind) {
  AttentionWord word = AttentionWord::gqa;
  reader.read_choice(node, word, kAttentions);
  if (word == AttentionWord::mla) kind.attention = Mla{};
  if (word == AttentionWord::gated_delta_net) kind.attention = GatedDeltaNet{};
  if (word == AttentionWord::compressed) kind.attention = CompressedAttention{};
}

Json write_attention(const LayerKind& kind) {
  const std::size_t index = kind.attention.index();
  return index == 0 ? Json() : Json(kAttentions[index].first);
}

void read_num_layers(MapReader& reader, const Node& node, ModelShape& model) {
  int num_layers = 0;
  reader.read(node, num_layers, between(1, kMostLayers));
  set_layers(model, num_layers, {});
}

Json write_num_layers(const ModelShape& model) { return model.num_layers(); }

void read_layer_kinds(MapReader& reader, const Node& node, ModelShape& model) {
  constexpr int kMostKinds = std::numeric_limits<std::uint8_t>::max();
  if (node.kind != NodeKind::list || node.children.empty() || node.children.size() > kMostKinds)
    return reader.complain(node,
                           "layer_kinds: must be a list of kinds of layers, at most " + std::to_string(kMostKinds));
  model.kinds.clear();
  for (const Node& each : node.children)
    read_section<LayerKindKeys>(MapReader(&each, "layer_kinds", reader.problems()), model.kinds.emplace_back());
}

Json write_layer_kinds(const ModelShape& model) {
  Json kinds = Json::array();
  for (const LayerKind& kind : model.kinds) kinds.push_back(json_of<LayerKindKeys>(kind));
  return kinds;
}

void read_layers(MapReader& reader, const Node& node, ModelShape& model) {
  std::vector<int> kinds;
  reader.read(node, kinds, between(0, static_cast<double>(model.kinds.size()) - 1));
  if (kinds.size() != model.layers.size())
    return reader.complain(node, "layers: must have as many entries as num_hidden_layers");
  model.layers.assign(kinds.begin(), kinds.end());
}

Json write_layers(const ModelShape& model) { return model.kinds.size() > 1 ? Json(model.layers) : Json(); }

void ModelKeys::check(MapReader& reader, ModelShape& model) {
  if (model.kinds.size() > 1) (void)reader.required("layers");
  const Node* sources = reader.optional("kv_sources");
  if (sources == nullptr) return;
  if (model.kv_sources.size() != model.layers.size())
    return reader.complain(*sources, "kv_sources: must have as many entries as num_hidden_layers");
  if (std::ranges::any_of(model.kv_sources, [&](int layer) { return layer >= model.num_layers(); }))
    reader.complain(*sources, "kv_sources: names a layer that there is not");
}

}  // namespace dculab::config
