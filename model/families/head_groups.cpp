// Groups of query heads that a family's own configuration cannot say: other numbers of KV heads, which may differ from
// layer to layer, and groups of different sizes. A model_type of our own, because programs that do not know these keys
// would read other models out of such files.
#include <algorithm>
#include <limits>

#include "model/families/config_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {
namespace {

// The next `count` of `values` from `first` on. Throws InputError where the list is too short.
[[nodiscard]] std::vector<int> take(const JsonFields& config, const char* key, const std::vector<int>& values,
                                    std::size_t& first, int count) {
  if (count < 0 || static_cast<std::size_t>(count) > values.size() - first)
    config.refuse(key, "has too few entries: one for each head of all layers, layer after layer");
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
  first += static_cast<std::size_t>(count);
  return {begin, begin + count};
}

void require_taken(const JsonFields& config, const char* key, const std::vector<int>& values, std::size_t taken) {
  if (taken != values.size())
    config.refuse(key, "has too many entries: one for each head of all layers, layer after layer");
}

void require_places(const JsonFields& config, std::vector<int> heads) {
  std::ranges::sort(heads);
  for (std::size_t head = 0; head < heads.size(); ++head)
    if (heads[head] != static_cast<int>(head))
      config.refuse("alibi_heads", "must have each query head of a layer once");
}

}  // namespace

// `layer_kv_heads`: KV heads of each layer. `kv_head_queries`: query heads of each of them, layer after layer; query
// heads stand in the order of their KV heads. `alibi_heads`: for each query head, layer after layer, whose ALiBi slope
// it has; without it, its own.
void read_head_groups(const JsonFields& config, ModelShape& shape) {
  const ModelShape ungrouped = shape;
  const std::vector<int> kv_heads = config.integers("layer_kv_heads"), queries = config.integers("kv_head_queries");
  const bool moves_slopes = config.has("alibi_heads");
  const std::vector<int> slopes = moves_slopes ? config.integers("alibi_heads") : std::vector<int>();
  if (static_cast<int>(kv_heads.size()) != shape.num_layers())
    config.refuse("layer_kv_heads",
                  "must have one entry for each of the " + std::to_string(shape.num_layers()) + " layers");
  if (moves_slopes && !shape.has_alibi()) config.refuse("alibi_heads", "is there, but the model has no ALiBi");
  shape.kinds.clear(), shape.layers.clear();
  std::size_t next_group = 0, next_slope = 0;
  for (int layer = 0; layer < ungrouped.num_layers(); ++layer) {
    LayerKind kind = ungrouped.layer(layer);
    if (!kind.has_kv_heads() || kind.gqa().shares_kv)
      config.refuse("layer_kv_heads", "layer " + std::to_string(layer) + " has no K and V of its own");
    if (kv_heads[static_cast<std::size_t>(layer)] < 1) config.refuse("layer_kv_heads", "must be positive");
    kind.gqa().set_groups(
        take(config, "kv_head_queries", queries, next_group, kv_heads[static_cast<std::size_t>(layer)]));
    if (moves_slopes) {
      kind.gqa().position.alibi_heads =
          take(config, "alibi_heads", slopes, next_slope, kind.gqa().heads.num_attention_heads);
      require_places(config, kind.gqa().position.alibi_heads);
      if (std::ranges::is_sorted(kind.gqa().position.alibi_heads)) kind.gqa().position.alibi_heads.clear();
    }
    add_layer(shape, kind);
    if (shape.kinds.size() > std::numeric_limits<std::uint8_t>::max())
      config.refuse("layer_kv_heads", "makes more than 255 kinds of layers");
  }
  require_taken(config, "kv_head_queries", queries, next_group);
  require_taken(config, "alibi_heads", slopes, next_slope);
}

}  // namespace dculab
