#include "engine/checkpoint/model_weights.hpp"

#include <string>
#include <utility>

#include "core/error.hpp"

namespace dculab::engine {
namespace {

// Rows of Q, K or V in a tensor of all three.
[[nodiscard]] RowPick pick_of(QkvLayout layout, const Heads& heads, std::size_t part) {
  if (layout == QkvLayout::stacked) {
    const int q = heads.query_width(), kv = heads.kv_width(), rows = q + 2 * kv;
    return {rows, part == kQ ? 0 : part == kK ? q : q + kv, part == kQ ? q : kv, rows};
  }
  const int query = heads.group_size() * heads.head_dim, group = query + 2 * heads.head_dim;
  const int first = part == kQ ? 0 : part == kK ? query : query + heads.head_dim;
  return {heads.num_key_value_heads * group, first, part == kQ ? query : heads.head_dim, group};
}

// Lists the tensors of the weights below a prefix.
class SlotList {
 public:
  explicit SlotList(const ModelShape& shape) : shape_(shape), names_(*shape.tensor_names) {}

  void add_outer(const WeightShape& weight, WeightSlots& slots) {
    const bool is_head = weight.slot == WeightSlot::lm_head;
    const std::string name = is_head ? std::string(names_.lm_head)
                                     : std::string(names_.model).append(names_.module(weight.slot, weight.part));
    add(weight, name, {}, 0, slots[weight.slot]);
  }

  void add_of_layer(const WeightShape& weight, int layer, WeightSlots& slots) {
    const RowPick pick = pick_in(weight, shape_.layer(layer).attention.heads);
    const bool fused = pick.tensor_rows > 0;
    std::string name = std::string(names_.model).append(names_.layers) + std::to_string(layer) + ".";
    name += names_.module(weight.slot, fused ? 0 : weight.part);
    add(weight, name, pick, layer, slots[weight.slot]);
  }

  [[nodiscard]] std::vector<TensorSlot> take() { return std::move(list_); }

 private:
  // Where the part lies in a tensor of several; all of its own where it has one.
  [[nodiscard]] RowPick pick_in(const WeightShape& weight, const Heads& heads) const {
    if (weight.slot == WeightSlot::qkv_proj && names_.qkv != QkvLayout::apart)
      return pick_of(names_.qkv, heads, weight.part);
    const int both = 2 * weight.rows;
    if (weight.slot == WeightSlot::up_proj && names_.stacked_gate_up)
      return {both, weight.part == kGate ? 0 : weight.rows, weight.rows, both};
    return {};
  }

  void add(const WeightShape& weight, const std::string& module, RowPick pick, int layer, SlotWeights& slot) {
    slot.count = static_cast<int>(weight.part) + 1;
    slot.columns = weight.columns;
    const SlotKind kind = weight.is_matrix() ? SlotKind::matrix : SlotKind::norm;
    const bool widened = kind == SlotKind::norm && shape_.norm == NormKind::layer_norm;
    list_.push_back({module + ".weight", weight.rows, weight.columns, &slot.weights[weight.part], kind, pick, widened,
                     weight.slot, layer});
    if (weight.has_bias)
      list_.push_back({module + ".bias", weight.rows, 0, &slot.biases[weight.part], SlotKind::bias, pick, true,
                       weight.slot, layer});
  }

  const ModelShape& shape_;
  const TensorNames& names_;
  std::vector<TensorSlot> list_;
};

}  // namespace

void require_tensor_names(const ModelShape& shape) {
  if (shape.tensor_names == nullptr)
    throw InputError(shape.name + " is of a family that is priced, not run; see docs/reference/model.md");
}

std::vector<TensorSlot> tensor_slots(ModelWeights& weights) {
  const ModelShape& shape = weights.shape;
  weights.layers.resize(shape.layers.size());
  SlotList slots(shape);
  const auto add_outer = [&](bool before_layers) {
    for (const WeightShape& weight : outer_weights(shape))
      if ((weight.slot < WeightSlot::attention_norm) == before_layers) slots.add_outer(weight, weights.outer);
  };
  add_outer(true);
  for (int layer = 0; layer < shape.num_layers(); ++layer)
    for (const WeightShape& weight : layer_weights(shape, shape.layer(layer)))
      slots.add_of_layer(weight, layer, weights.layers[static_cast<std::size_t>(layer)]);
  add_outer(false);
  return slots.take();
}

void tie_head(ModelWeights& weights) {
  if (weights.shape.tie_word_embeddings) weights.outer[WeightSlot::lm_head] = weights.outer[WeightSlot::embed_tokens];
}

}  // namespace dculab::engine
