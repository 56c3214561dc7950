// The weights that a model has: which matrices and vectors lie in each slot. Footprints count them, a checkpoint is
// read for them.
#pragma once

#include <array>
#include <cstdint>

#include "core/op.hpp"
#include "model/model_shape.hpp"

namespace dculab {

// Parts of a slot: modules that share their input.
inline constexpr std::size_t kQ = 0, kK = 1, kV = 2;  // of qkv_proj
inline constexpr std::size_t kGate = 0, kUp = 1;      // of a gated MLP's up_proj; a plain MLP has one part
inline constexpr std::size_t kCorrectionBias = 1;     // of a router, beside its matrix
inline constexpr std::size_t kExpertScale = 1;        // of a router without correction bias, of each expert's output
inline constexpr std::size_t kRouterScale = 2;        // of a router, of its input
inline constexpr std::size_t kPositionPart = 1;       // of embed_tokens, beside the tokens' own
inline constexpr std::size_t kIndexer = 1;            // of projections and norms that attention's indexer has too
inline constexpr std::size_t kMostParts = 3;

// One module: a matrix [rows, columns], or a vector [rows] whose columns are 0; its bias has `rows` values. Of experts
// there are as many as `copies`.
struct WeightShape {
  WeightSlot slot = WeightSlot::none;
  std::size_t part = 0;
  int rows = 0, columns = 0;
  bool has_bias = false;
  int copies = 1;
  bool is_plain = false;  // in the model's dtype, however the layers' matrices are quantized

  [[nodiscard]] bool is_matrix() const { return columns > 0; }
  [[nodiscard]] double matrix_values() const { return is_plain ? 0.0 : static_cast<double>(copies) * rows * columns; }
  // Of norms, biases and what is plain.
  [[nodiscard]] double plain_values() const {
    const double values = !is_matrix() ? rows : is_plain ? static_cast<double>(rows) * columns : 0.0;
    return copies * (values + (has_bias ? rows : 0.0));
  }
};

// A list without allocation.
class WeightShapes {
 public:
  void add(const WeightShape& weight) { weights_[size_++] = weight; }
  [[nodiscard]] const WeightShape* begin() const { return weights_.data(); }
  [[nodiscard]] const WeightShape* end() const { return weights_.data() + size_; }

 private:
  std::array<WeightShape, 36> weights_{};
  std::size_t size_ = 0;
};

// Of one layer of a kind, in the order in which a step reads them.
[[nodiscard]] WeightShapes layer_weights(const ModelShape& model, const LayerKind& kind);

// Outside of the layers. A tied head is not among them.
[[nodiscard]] WeightShapes outer_weights(const ModelShape& model);

}  // namespace dculab
