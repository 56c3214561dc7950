// The weights of a model, and which tensors of a checkpoint it is made of.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/op.hpp"
#include "engine/checkpoint/kv_calibration.hpp"
#include "kernels/ops.hpp"
#include "model/weight_shapes.hpp"

namespace dculab::engine {

// What a weight slot holds: matrices of `columns` in-features that share their input, or one vector (a norm's), each
// with its bias. Matrices are [out_features, in_features]; a bias is F32, [out_features], and null where there is none,
// and weights of LayerNorm are F32 too. Parts: model/weight_shapes.hpp. A router's correction bias is F32 and does not
// count as a part.
struct SlotWeights {
  std::array<kernels::WeightView, kMostParts> weights, biases;
  int count = 0;    // of parts; 0 where the model has no such weights
  int columns = 0;  // of a vector 0
  // In place of those where each expert has its own: [num_experts] of each part.
  std::array<std::vector<kernels::WeightView>, kMostParts> expert_weights, expert_biases;
};

// Of one layer, or outside of the layers: those of other slots are empty.
class WeightSlots {
 public:
  [[nodiscard]] SlotWeights& operator[](WeightSlot slot) { return slots_[static_cast<std::size_t>(slot)]; }
  [[nodiscard]] const SlotWeights& operator[](WeightSlot slot) const { return slots_[static_cast<std::size_t>(slot)]; }

 private:
  std::array<SlotWeights, kWeightSlots> slots_;
};

// The values of a bias or of a LayerNorm's weight; null where there is none.
[[nodiscard]] inline const float* f32_values(const kernels::WeightView& vector) {
  return static_cast<const float*>(vector.data);
}

// A whole model. The views point into `memory`; copies share it.
struct ModelWeights {
  ModelShape shape;
  WeightSlots outer;                            // embed_tokens, embed_norm, final_norm, lm_head: embed_tokens when tied
  std::vector<WeightSlots> layers;              // [num_hidden_layers]
  std::vector<kernels::Fp8KvScales> kv_scales;  // [num_hidden_layers], calibrated; empty: all 1
  std::vector<std::shared_ptr<const void>> memory;
  std::function<std::shared_ptr<const KvCalibration>()> kv_calibration{};  // read when it is asked for; null: none

  // Those of `layer` where the slot is a layer's.
  [[nodiscard]] const SlotWeights& in(WeightSlot slot, int layer) const {
    return (is_of_layer(slot) ? layers[static_cast<std::size_t>(layer)] : outer)[slot];
  }
};

// Which rows of a tensor: `run` of them from `first` on, and again every `stride` rows. Q, K and V may be fused in one
// tensor, group by group: [KV heads, group size + 2, head_dim] rows.
struct RowPick {
  int tensor_rows = 0;  // 0: all rows, and the tensor has no others
  int first = 0, run = 0, stride = 0;
};

enum class SlotKind : std::uint8_t { matrix, norm, bias };

// Slots of which each expert has its own weights.
[[nodiscard]] constexpr bool is_of_experts(WeightSlot slot) {
  return slot == WeightSlot::expert_up_proj || slot == WeightSlot::expert_down_proj;
}

// A tensor that the model needs, or rows of one, and the view that must point to them.
struct TensorSlot {
  std::string name;  // in the checkpoint: "model.layers.0.self_attn.q_proj.weight"
  int rows = 0;
  int columns = 0;  // 0: a vector of `rows` values
  kernels::WeightView* view = nullptr;
  SlotKind kind = SlotKind::matrix;
  RowPick pick{};
  bool widened = false;  // to F32: biases, and the weights of LayerNorm
  WeightSlot slot = WeightSlot::none;
  int layer = 0;  // of a slot that each layer has
  std::size_t part = 0;
  int expert = 0;         // of a slot that each expert has
  int stacked = 0;        // experts in the tensor, [stacked, tensor_rows / stacked, columns]
  bool is_plain = false;  // a matrix that quantization leaves as it is: a router's

  [[nodiscard]] std::size_t values() const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns == 0 ? 1 : columns);
  }
  [[nodiscard]] bool is_part() const { return pick.tensor_rows > 0; }
  [[nodiscard]] int tensor_rows() const { return is_part() ? pick.tensor_rows : rows; }
  // The row of the tensor that is row `row` of the slot.
  [[nodiscard]] int tensor_row(int row) const {
    return is_part() ? pick.first + row / pick.run * pick.stride + row % pick.run : row;
  }
};

// Throws InputError where the engine does not run the model's family.
void require_tensor_names(const ModelShape& shape);

// All tensors of weights.shape, in the order a step reads them; sizes weights.layers and says how many parts each slot
// has. A tied head is not among them.
[[nodiscard]] std::vector<TensorSlot> tensor_slots(ModelWeights& weights);

// Lets a tied head be the embedding, once all slots are filled.
void tie_head(ModelWeights& weights);

}  // namespace dculab::engine
