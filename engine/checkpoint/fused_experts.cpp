#include "engine/checkpoint/fused_experts.hpp"

#include <string>

namespace dculab::engine {
namespace {

[[nodiscard]] const char* fused_name(const TensorSlot& slot) {
  if (slot.slot == WeightSlot::router && slot.part == 0) return "mlp.gate.weight";
  if (slot.slot == WeightSlot::expert_up_proj) return "mlp.experts.gate_up_proj";
  return slot.slot == WeightSlot::expert_down_proj ? "mlp.experts.down_proj" : nullptr;
}

// The rows of one expert's gate, up or down.
void show_part_of(const std::string& tensor, int num_experts, TensorSlot& slot) {
  slot.name = tensor;
  if (!is_of_experts(slot.slot)) return;
  const int parts = slot.slot == WeightSlot::expert_up_proj ? 2 : 1, rows = num_experts * parts * slot.rows;
  const int first = (slot.expert * parts + static_cast<int>(slot.part)) * slot.rows;
  slot.pick = {rows, first, slot.rows, rows};
  slot.stacked = num_experts;
}

}  // namespace

void use_fused_experts(const Checkpoint& checkpoint, const ModelShape& shape, std::vector<TensorSlot>& slots) {
  for (TensorSlot& slot : slots) {
    const char* const fused = slot.kind == SlotKind::matrix ? fused_name(slot) : nullptr;
    if (fused == nullptr || checkpoint.find(slot.name).tensor != nullptr) continue;
    const std::string tensor = std::string(shape.tensor_names->model).append(shape.tensor_names->layers) +
                               std::to_string(slot.layer) + "." + fused;
    if (checkpoint.find(tensor).tensor != nullptr)
      show_part_of(tensor, shape.layer(slot.layer).experts->num_experts, slot);
  }
}

}  // namespace dculab::engine
