#include "engine/quantize/layer_matrices.hpp"

#include <algorithm>

namespace dculab::engine {

std::vector<LayerMatmul> layer_matmuls(ModelWeights& weights, int layer) {
  LayerWeights& views = weights.layers[static_cast<std::size_t>(layer)];
  const bool gated = weights.shape.mlp == MlpKind::gated;
  std::vector<std::pair<std::string_view, std::vector<const kernels::WeightView*>>> ops{
      {"qkv_proj", {&views.q_proj, &views.k_proj, &views.v_proj}}, {"o_proj", {&views.o_proj}}};
  if (gated)
    ops.push_back({"gate_up_proj", {&views.gate_proj, &views.up_proj}});
  else
    ops.push_back({"up_proj", {&views.up_proj}});
  ops.push_back({"down_proj", {&views.down_proj}});
  const std::vector<TensorSlot> slots = tensor_slots(weights);
  std::vector<LayerMatmul> matmuls;
  for (const auto& [op, members] : ops) {
    LayerMatmul& matmul = matmuls.emplace_back(LayerMatmul{op, {}});
    for (const kernels::WeightView* view : members)
      matmul.slots.push_back(*std::ranges::find_if(slots, [&](const TensorSlot& slot) { return slot.view == view; }));
  }
  return matmuls;
}

std::vector<std::span<const TensorSlot>> tensors_of(const LayerMatmul& matmul) {
  std::vector<std::span<const TensorSlot>> tensors;
  for (auto first = matmul.slots.begin(); first != matmul.slots.end();) {
    const auto last =
        std::find_if(first, matmul.slots.end(), [&](const TensorSlot& slot) { return slot.name != first->name; });
    tensors.emplace_back(first, last);
    first = last;
  }
  return tensors;
}

std::vector<float> joined_rows(std::span<const TensorSlot> tensor) {
  const TensorSlot& any = tensor.front();
  std::vector<float> values(static_cast<std::size_t>(any.tensor_rows()) * static_cast<std::size_t>(any.columns));
  for (const TensorSlot& slot : tensor) {
    const auto* const from = static_cast<const float*>(slot.view->data);
    for (int row = 0; row < slot.rows; ++row)
      std::copy_n(from + std::ptrdiff_t{row} * slot.columns, slot.columns,
                  values.begin() + std::ptrdiff_t{slot.tensor_row(row)} * slot.columns);
  }
  return values;
}

std::vector<float> rows_of(const TensorSlot& slot, std::span<const float> tensor) {
  std::vector<float> values(slot.values());
  for (int row = 0; row < slot.rows; ++row)
    std::copy_n(tensor.begin() + std::ptrdiff_t{slot.tensor_row(row)} * slot.columns, slot.columns,
                values.begin() + std::ptrdiff_t{row} * slot.columns);
  return values;
}

}  // namespace dculab::engine
