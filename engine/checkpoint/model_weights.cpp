#include "engine/checkpoint/model_weights.hpp"

#include <string>
#include <utility>

#include "core/error.hpp"

namespace dculab::engine {
namespace {

// Rows of Q, K or V in a tensor of all three.
// Where groups differ, no row stands at equal distances from the next of its kind: such tensors of ours are stacked.
[[nodiscard]] RowPick pick_of(QkvLayout layout, const Gqa& attention, std::size_t part) {
  const Heads& heads = attention.heads;
  if (layout == QkvLayout::stacked || !attention.group_sizes.empty()) {
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
    const std::string prefix = std::string(names_.model).append(names_.layers) + std::to_string(layer) + ".";
    SlotWeights& slot = slots[weight.slot];
    if (is_of_experts(weight.slot)) return add_of_experts(weight, prefix, layer, slot);
    const RowPick pick = pick_in(weight, shape_.layer(layer));
    const bool fused = pick.tensor_rows > 0;
    const std::string name = prefix + std::string(module(weight, fused ? 0 : weight.part, shape_.layer(layer)));
    if (weight.slot == WeightSlot::router && weight.part == kCorrectionBias)
      return list_.push_back({name,
                              weight.rows,
                              0,
                              &slot.weights[weight.part],
                              SlotKind::bias,
                              {},
                              true,
                              weight.slot,
                              layer,
                              weight.part});
    add(weight, name, pick, layer, slot);
  }

  [[nodiscard]] std::vector<TensorSlot> take() { return std::move(list_); }

 private:
  // Where the part lies in a tensor of several; all of its own where it has one.
  [[nodiscard]] RowPick pick_in(const WeightShape& weight, const LayerKind& kind) const {
    if (weight.slot == WeightSlot::qkv_proj && names_.qkv != QkvLayout::apart)
      return pick_of(names_.qkv, kind.gqa(), weight.part);
    const int both = 2 * weight.rows;
    if (weight.slot == WeightSlot::up_proj && names_.stacked_gate_up)
      return {both, weight.part == kGate ? 0 : weight.rows, weight.rows, both};
    return {};
  }

  // Beside experts the MLP for all tokens has names of its own.
  [[nodiscard]] std::string_view module(const WeightShape& weight, std::size_t part, const LayerKind& kind) const {
    if (kind.experts && weight.slot == WeightSlot::up_proj) return names_.shared_mlp[part];
    if (kind.experts && weight.slot == WeightSlot::down_proj) return names_.shared_mlp[2];
    return names_.module(weight.slot, part);
  }

  void add_of_experts(const WeightShape& weight, const std::string& prefix, int layer, SlotWeights& slot) {
    const auto copies = static_cast<std::size_t>(weight.copies);
    slot.count = static_cast<int>(weight.part) + 1;
    slot.columns = weight.columns;
    slot.expert_weights[weight.part].resize(copies);
    if (weight.has_bias) slot.expert_biases[weight.part].resize(copies);
    const std::string_view module = names_.module(weight.slot, weight.part);
    const std::size_t star = module.find('*');
    for (std::size_t expert = 0; expert < copies; ++expert) {
      const std::string name =
          prefix + std::string(module.substr(0, star)) + std::to_string(expert) + std::string(module.substr(star + 1));
      add_tensors(weight, name, {}, layer, &slot.expert_weights[weight.part][expert],
                  weight.has_bias ? &slot.expert_biases[weight.part][expert] : nullptr, static_cast<int>(expert));
    }
  }

  void add(const WeightShape& weight, const std::string& module, RowPick pick, int layer, SlotWeights& slot) {
    slot.count = static_cast<int>(weight.part) + 1;
    slot.columns = weight.columns;
    add_tensors(weight, module, pick, layer, &slot.weights[weight.part], &slot.biases[weight.part], 0);
  }

  void add_tensors(const WeightShape& weight, const std::string& module, RowPick pick, int layer,
                   kernels::WeightView* view, kernels::WeightView* bias, int expert) {
    const SlotKind kind = weight.is_matrix() ? SlotKind::matrix : SlotKind::norm;
    const bool widened = kind == SlotKind::norm && shape_.norm == NormKind::layer_norm;
    list_.push_back({module + ".weight", weight.rows, weight.columns, view, kind, pick, widened, weight.slot, layer,
                     weight.part, expert, 0, weight.is_plain});
    if (weight.has_bias)
      list_.push_back({module + ".bias", weight.rows, 0, bias, SlotKind::bias, pick, true, weight.slot, layer,
                       weight.part, expert});
  }

  const ModelShape& shape_;
  const TensorNames& names_;
  std::vector<TensorSlot> list_;
};

}  // namespace

void require_tensor_names(const ModelShape& shape) {
  if (shape.tensor_names == nullptr)
    throw InputError(shape.name + " is of a family that is predicted, not run; see docs/reference/engine.md");
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
