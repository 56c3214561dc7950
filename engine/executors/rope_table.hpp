// Cosines and sines of rotary position embedding, as Hugging Face's Llama computes them.
#pragma once

#include <vector>

#include "model/layer_kind.hpp"

namespace dculab::engine {

// The rotary_dim / 2 angular frequencies (radians per token), scaled as the position's rope_scaling says: by
// LongRoPE's short factors, which hold up to its original context.
// Computed in F32: transformers does (modeling_rope_utils.py), and the model was trained with that rounding.
[[nodiscard]] std::vector<float> rope_frequencies(const Rotation& rotation);

// Cosines and sines, times the scaling's attention_factor. Beyond max_position_embeddings, where only streams get
// (EngineOptions::kv_retention), angles are multiplied in F64: there is no F32 model to follow, and their roundings
// would grow with the position. Rows for the positions seen so far; grows by doubling, so a long maximum context costs
// nothing until it is used.
class RopeTable {
 public:
  // trained_positions: the model's max_position_embeddings.
  RopeTable(const Rotation& rotation, int trained_positions)
      : frequencies_(rope_frequencies(rotation)),
        factor_(static_cast<float>(rotation.position.rope_scaling.attention_factor)),
        trained_positions_(trained_positions) {}

  // [>= num_positions, rotary_dim]: cos of rotary_dim / 2 angles, then sin. Valid until the next call.
  [[nodiscard]] const float* rows(int num_positions);

 private:
  void fill(int position);

  std::vector<float> frequencies_;  // [rotary_dim / 2]
  float factor_ = 1.0F;             // of cosines and sines
  std::vector<float> cos_sin_;      // [num_rows_, rotary_dim]
  int trained_positions_ = 0;
  int num_rows_ = 0;
};

}  // namespace dculab::engine
