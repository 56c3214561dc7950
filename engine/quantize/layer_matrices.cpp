#include "engine/quantize/layer_matrices.hpp"

#include <algorithm>

namespace dculab::engine {

std::vector<LayerMatmul> layer_matmuls(ModelWeights& weights, int layer) {
  std::vector<LayerMatmul> matmuls;
  for (const TensorSlot& tensor : tensor_slots(weights)) {
    if (tensor.kind != SlotKind::matrix || tensor.is_plain || !is_of_layer(tensor.slot) || tensor.layer != layer)
      continue;
    if (matmuls.empty() || matmuls.back().weight != tensor.slot) matmuls.push_back({tensor.slot, {}});
    matmuls.back().slots.push_back(tensor);
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
