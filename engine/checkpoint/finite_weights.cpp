#include "engine/checkpoint/finite_weights.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.hpp"
#include "engine/checkpoint/stored_values.hpp"

namespace dculab::engine {

void require_finite(const ModelWeights& weights) {
  ModelWeights copy = weights;  // weight_slots wants to be able to set the views
  std::vector<float> row;
  for (const WeightSlot& slot : weight_slots(copy)) {
    row.resize(static_cast<std::size_t>(std::max(slot.columns, 1)));
    const std::size_t row_bytes = row.size() * static_cast<std::size_t>(bits(slot.view->dtype)) / 8;
    const auto* stored = static_cast<const std::byte*>(slot.view->data);
    for (int index = 0; index < slot.rows; ++index, stored += row_bytes) {
      widen(stored, slot.view->dtype, row);
      if (!std::ranges::all_of(row, [](float value) { return std::isfinite(value); }))
        throw InputError(slot.name, "has a weight that is NaN or infinite; the checkpoint is damaged");
    }
  }
}

}  // namespace dculab::engine
