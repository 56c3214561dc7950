#include "engine/parallel/weight_parts.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/memory/anonymous_memory.hpp"
#include "engine/parallel/weight_cut.hpp"

namespace dculab::engine {
namespace {

using SlotKey = std::tuple<WeightSlot, int, std::size_t, int, SlotKind>;  // layer, part, expert

[[nodiscard]] SlotKey key_of(const TensorSlot& slot, int first_expert) {
  return {slot.slot, slot.layer, slot.part, slot.expert + first_expert, slot.kind};
}

// One tensor of a part, where it is in the whole, and what of it.
struct PartSlot {
  TensorSlot part;
  const kernels::WeightView* whole = nullptr;
  WeightCut cut;
};

[[nodiscard]] int columns_of(const TensorSlot& slot) { return std::max(1, slot.columns); }

// The vocabulary is filled up so that it divides. All else divides, or is shared by as many ranks as it is short of.
[[nodiscard]] int first_row(const TensorSlot& part, const TensorSlot& whole, int rank, int ranks) {
  if (part.slot == WeightSlot::embed_tokens || part.slot == WeightSlot::lm_head) return rank * part.rows;
  return rank * (whole.rows / part.rows) / ranks * part.rows;
}

[[nodiscard]] WeightCut cut_of(const TensorSlot& part, const TensorSlot& whole, int rank, int ranks) {
  return {.first_row = first_row(part, whole, rank, ranks),
          .rows = part.rows,
          .first_column = part.columns == whole.columns ? 0 : rank * part.columns,
          .columns = columns_of(part),
          .whole_rows = whole.rows,
          .whole_columns = columns_of(whole)};
}

// Of a layer's experts that the rank holds whole, the first.
[[nodiscard]] int first_expert(const ModelShape& part, const TensorSlot& slot, int rank) {
  if (!is_of_experts(slot.slot)) return 0;
  const auto& experts = part.layer(slot.layer).experts;
  return experts && experts->part ? rank * experts->held() : 0;
}

[[nodiscard]] std::vector<PartSlot> match(std::vector<TensorSlot> parts, const std::vector<TensorSlot>& wholes,
                                          const ModelShape& shape, int rank) {
  std::map<SlotKey, const TensorSlot*> known;
  for (const TensorSlot& whole : wholes) known.emplace(key_of(whole, 0), &whole);
  std::vector<PartSlot> slots;
  bool sums = false;  // of the weights before, whose bias it is: results are added up over the ranks
  for (TensorSlot& part : parts) {
    const TensorSlot& whole = *known.at(key_of(part, first_expert(shape, part, rank)));
    const WeightCut cut = cut_of(part, whole, rank, shape.tensor_parallel_size);
    if (part.kind != SlotKind::bias) sums = cut.cuts_columns();
    if (part.kind == SlotKind::bias && sums && rank > 0) continue;
    slots.push_back({std::move(part), whole.view, cut});
  }
  return slots;
}

}  // namespace

ModelWeights part_of_weights(const ModelWeights& whole, const ModelShape& part, int rank) {
  ModelWeights source = whole, weights;
  weights.shape = part;
  weights.kv_scales = whole.kv_scales;
  const std::vector<TensorSlot> wholes = tensor_slots(source);  // which keeps the views
  const std::vector<PartSlot> slots = match(tensor_slots(weights), wholes, part, rank);
  std::size_t total = 0;
  for (const PartSlot& slot : slots) total += rounded_to_line(room_for(*slot.whole, slot.cut));
  require_memory("a rank's part of the weights", Bytes(static_cast<double>(total)),
                 "use fewer ranks, or a smaller model");
  auto memory = std::make_shared<const AnonymousMemory>(total);
  auto beside = std::make_shared<CutMemory>();
  std::byte* next = memory->data();
  for (const PartSlot& slot : slots) {
    *slot.part.view = copy_part(*slot.whole, slot.cut, slot.part.name, next, *beside);
    next += rounded_to_line(room_for(*slot.whole, slot.cut));
  }
  weights.memory.push_back(std::move(memory));
  weights.memory.push_back(std::move(beside));
  tie_head(weights);
  return weights;
}

}  // namespace dculab::engine
