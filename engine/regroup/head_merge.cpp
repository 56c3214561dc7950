#include "engine/regroup/head_merge.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "engine/checkpoint/stored_values.hpp"
#include "engine/memory/anonymous_memory.hpp"

namespace dculab::engine {
namespace {

// Heads one after another, `head_values` stored values each.
struct HeadRows {
  const std::byte* data = nullptr;
  Dtype dtype = Dtype::f32;
  std::size_t head_values = 0;

  [[nodiscard]] std::size_t head_bytes() const { return head_values * static_cast<std::size_t>(bits(dtype)) / 8; }
  [[nodiscard]] const std::byte* head(int index) const { return data + static_cast<std::size_t>(index) * head_bytes(); }
};

std::vector<int> old_order(const HeadGroups& groups) {
  std::vector<int> order;
  for (const std::vector<int>& group : groups) order.insert(order.end(), group.begin(), group.end());
  return order;
}

// The query heads of a KV head stay together, and in their order.
std::vector<int> query_order(const HeadGroups& groups, int group_size) {
  std::vector<int> order;
  for (const int head : old_order(groups))
    for (int i = 0; i < group_size; ++i) order.push_back(head * group_size + i);
  return order;
}

bool changes_order(const LayerMerge& layer) { return !std::ranges::is_sorted(old_order(layer.groups)); }

bool changes_queries(const LayerMerge& layer) { return changes_order(layer) || !layer.maps.empty(); }

// What each head of the group is multiplied by.
std::vector<float> shares(const LayerMerge& layer, const std::vector<int>& group, const std::vector<double>& factors) {
  std::vector<float> result(group.size(), 1.0F / static_cast<float>(group.size()));
  double total = 0;
  if (!layer.weights.empty())
    for (const int head : group) total += layer.weights[static_cast<std::size_t>(head)];
  for (std::size_t i = 0; i < group.size(); ++i) {
    const auto head = static_cast<std::size_t>(group[i]);
    if (!factors.empty())
      result[i] = static_cast<float>(factors[head]);
    else if (total > 0)
      result[i] = static_cast<float>(layer.weights[head] / total);
  }
  return result;
}

void merge_rows(const HeadRows& source, const LayerMerge& layer, const std::vector<double>& factors,
                std::byte* destination) {
  std::vector<float> head(source.head_values);
  std::vector<float> mean(source.head_values);
  for (const std::vector<int>& group : layer.groups) {
    const std::vector<float> share = shares(layer, group, factors);
    std::ranges::fill(mean, 0.0F);
    for (std::size_t i = 0; i < group.size(); ++i) {
      widen(source.head(group[i]), source.dtype, head);
      for (std::size_t j = 0; j < head.size(); ++j) mean[j] += share[i] * head[j];
    }
    narrow(mean, source.dtype, destination);
    destination += source.head_bytes();
  }
}

void reorder_rows(const HeadRows& source, const std::vector<int>& order, std::byte* destination) {
  for (const int head : order) {
    std::memcpy(destination, source.head(head), source.head_bytes());
    destination += source.head_bytes();
  }
}

void encode_rows(const HeadRows& source, const LayerMerge& layer, const StoredRows& format, HeadMaps GroupMaps::*kind,
                 std::byte* destination) {
  for (std::size_t i = 0; i < layer.groups.size(); ++i) {
    std::vector<std::byte> heads(layer.groups[i].size() * source.head_bytes());
    reorder_rows(source, layer.groups[i], heads.data());
    encode_heads(layer.maps[i].*kind, format, heads.data(), destination);
    destination += source.head_bytes();
  }
}

// Takes the tensors that change from one piece of memory.
class MergedTensors {
 public:
  MergedTensors(const ModelShape& before, std::size_t bytes)
      : before_(before), memory_(std::make_shared<const AnonymousMemory>(bytes)), next_(memory_->data()) {}

  void merge(WeightSlots& weights, const LayerMerge& layer) {
    merge_view(weights[WeightSlot::qkv_proj].weights[kK], layer, before_.hidden_size, &GroupMaps::k);
    merge_view(weights[WeightSlot::qkv_proj].weights[kV], layer, before_.hidden_size, &GroupMaps::v);
    if (before_.kinds.front().gqa().qkv_bias) {
      merge_view(weights[WeightSlot::qkv_proj].biases[kK], layer, 1, &GroupMaps::k);
      merge_view(weights[WeightSlot::qkv_proj].biases[kV], layer, 1, &GroupMaps::v);
    }
    if (!changes_queries(layer)) return;
    const std::vector<int> order = query_order(layer.groups, before_.heads().group_size());
    change_queries(weights[WeightSlot::qkv_proj].weights[kQ], layer, order, before_.hidden_size);
    if (before_.kinds.front().gqa().qkv_bias) change_queries(weights[WeightSlot::qkv_proj].biases[kQ], layer, order, 1);
    change_outputs(weights[WeightSlot::o_proj].weights[0], layer, order);
  }

  [[nodiscard]] std::shared_ptr<const AnonymousMemory> memory() const { return memory_; }

 private:
  // Of a matrix with `columns` columns, or of a bias: one.
  [[nodiscard]] HeadRows heads_of(const kernels::WeightView& view, int columns) const {
    return {static_cast<const std::byte*>(view.data), view.dtype,
            static_cast<std::size_t>(before_.heads().head_dim) * static_cast<std::size_t>(columns)};
  }

  void merge_view(kernels::WeightView& view, const LayerMerge& layer, int columns, HeadMaps GroupMaps::*kind) {
    const HeadRows rows = heads_of(view, columns);
    std::byte* const destination = take(view, layer.groups.size() * rows.head_values);
    if (layer.maps.empty())
      merge_rows(rows, layer, kind == &GroupMaps::k ? layer.factors.k : layer.factors.v, destination);
    else
      encode_rows(rows, layer, {before_.heads().head_dim, columns, view.dtype}, kind, destination);
    view = {destination, view.dtype, static_cast<int>(layer.groups.size()) * before_.heads().head_dim};
  }

  std::byte* take(const kernels::WeightView& view, std::size_t values) {
    std::byte* const taken = next_;
    next_ += values * static_cast<std::size_t>(bits(view.dtype)) / 8;
    return taken;
  }

  // Rows of q_proj, or its bias: one column.
  void change_queries(kernels::WeightView& view, const LayerMerge& layer, const std::vector<int>& order, int columns) {
    const HeadRows rows = heads_of(view, columns);
    std::byte* const queries = take(view, order.size() * rows.head_values);
    reorder_rows(rows, order, queries);
    std::byte* group = queries;
    for (std::size_t i = 0; i < layer.maps.size(); ++i) {
      decode_queries(layer.maps[i].k, {before_.heads().head_dim, columns, view.dtype}, before_.heads().group_size(),
                     group);
      group += layer.groups[i].size() * static_cast<std::size_t>(before_.heads().group_size()) * rows.head_bytes();
    }
    view.data = queries;
  }

  // A row of o_proj holds head_dim values of each head.
  void change_outputs(kernels::WeightView& view, const LayerMerge& layer, const std::vector<int>& order) {
    HeadRows row = heads_of(view, 1);
    const std::size_t row_bytes = row.head_bytes() * order.size();
    std::byte* const outputs =
        take(view, static_cast<std::size_t>(before_.hidden_size) * order.size() * row.head_values);
    for (std::size_t i = 0; i < static_cast<std::size_t>(before_.hidden_size); ++i) {
      reorder_rows(row, order, outputs + i * row_bytes);
      row.data += row_bytes;
    }
    if (!layer.maps.empty())
      decode_outputs(layer.maps, before_.heads().head_dim, before_.heads().group_size(), before_.hidden_size,
                     view.dtype, outputs);
    view.data = outputs;
  }

  const ModelShape& before_;
  std::shared_ptr<const AnonymousMemory> memory_;
  std::byte* next_;
};

std::size_t changed_bytes(const ModelWeights& weights, std::span<const LayerMerge> layers) {
  const auto bytes = [](const kernels::WeightView& view, int rows, int columns) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns) *
           static_cast<std::size_t>(bits(view.dtype)) / 8;
  };
  const Heads heads = weights.shape.heads();
  const int hidden = weights.shape.hidden_size;
  std::size_t total = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const WeightSlots& layer = weights.layers[i];
    const int kv_width = static_cast<int>(layers[i].groups.size()) * heads.head_dim;
    total += bytes(layer[WeightSlot::qkv_proj].weights[kK], kv_width, hidden) +
             bytes(layer[WeightSlot::qkv_proj].weights[kV], kv_width, hidden);
    if (changes_queries(layers[i]))
      total += bytes(layer[WeightSlot::qkv_proj].weights[kQ], heads.query_width(), hidden) +
               bytes(layer[WeightSlot::o_proj].weights[0], heads.query_width(), hidden);
    if (weights.shape.kinds.front().gqa().qkv_bias)
      total += bytes(layer[WeightSlot::qkv_proj].biases[kQ], heads.query_width() + 2 * kv_width, 1);
  }
  return total;
}

// Its KV heads are no longer those that they were, in the order in which they were.
bool changes_heads(const LayerMerge& layer) {
  const auto is_merged = [](const std::vector<int>& group) { return group.size() > 1; };
  return changes_queries(layer) || std::ranges::any_of(layer.groups, is_merged) || !layer.factors.k.empty();
}

void require_mergeable(const ModelShape& shape, std::span<const LayerMerge> layers) {
  if (shape.quantization)
    throw InputError("the KV heads of a quantized model cannot be merged; regroup the model it was made from");
  require_mergeable_heads(shape);
  const auto has_maps = [](const LayerMerge& layer) { return !layer.maps.empty(); };
  for (const LayerKind& kind : shape.kinds) {
    const Gqa& attention = kind.gqa();
    const bool plain = attention.qk_norm == QkNorm::none && attention.position.pairs == RopePairs::halves &&
                       attention.rotary_dim() == attention.heads.head_dim;
    if (!plain && std::ranges::any_of(layers, has_maps))
      throw InputError(
          "merging by SVD needs heads that are rotated whole, in halves, and have no norms; use --merge mean");
  }
}

}  // namespace

void require_mergeable_heads(const ModelShape& shape) {
  const std::string refused = "the KV heads of " + shape.name + " cannot be merged: ";
  if (shape.has_unequal_heads()) throw InputError(refused + "its layers or groups differ already");
  for (const LayerKind& kind : shape.kinds) {
    if (!kind.has_kv_heads()) throw InputError(refused + "all heads share one latent");
    if (kind.gqa().shares_kv) throw InputError(refused + "some layers read the K and V of an earlier one");
    if (kind.gqa().qk_norm == QkNorm::whole) throw InputError(refused + "the norm of K is of all heads at once");
  }
}

void require_divisor(const ModelShape& shape, int num_key_value_heads) {
  if (num_key_value_heads < 1 || shape.heads().num_key_value_heads % num_key_value_heads != 0)
    throw InputError("the model's " + std::to_string(shape.heads().num_key_value_heads) +
                     " KV heads cannot be pooled into " + std::to_string(num_key_value_heads) + "; choose a divisor");
}

ModelShape merged_shape(const ModelShape& shape, std::span<const LayerMerge> layers) {
  ModelShape result = shape;
  result.kinds.clear(), result.layers.clear();
  const int group_size = shape.heads().group_size();
  for (int i = 0; i < shape.num_layers(); ++i) {
    const LayerMerge& layer = layers[static_cast<std::size_t>(i)];
    LayerKind kind = shape.layer(i);
    std::vector<int> sizes;
    for (const std::vector<int>& group : layer.groups) sizes.push_back(static_cast<int>(group.size()) * group_size);
    kind.gqa().set_groups(std::move(sizes));
    if (kind.gqa().position.kind == PositionKind::alibi && changes_order(layer)) {
      std::vector<int> slopes = query_order(layer.groups, group_size);
      const std::vector<int>& before = kind.gqa().position.alibi_heads;
      for (int& head : slopes)
        if (!before.empty()) head = before[static_cast<std::size_t>(head)];
      kind.gqa().position.alibi_heads = std::move(slopes);
    }
    add_layer(result, kind);
  }
  return result;
}

ModelWeights merge_heads(const ModelWeights& weights, std::span<const LayerMerge> layers) {
  require_mergeable(weights.shape, layers);
  ModelWeights result = weights;
  result.shape = merged_shape(weights.shape, layers);
  MergedTensors tensors(weights.shape, changed_bytes(weights, layers));
  for (std::size_t i = 0; i < layers.size(); ++i) tensors.merge(result.layers[i], layers[i]);
  result.memory.push_back(tensors.memory());
  if (std::ranges::any_of(layers, changes_heads)) result.kv_scales.clear(), result.kv_calibration = nullptr;
  return result;
}

}  // namespace dculab::engine
