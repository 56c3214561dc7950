// Medusa heads of a folder as vLLM has them: config.json with model_type "medusa", and the heads' weights.
// Source: vLLM, model_executor/models/medusa.py and transformers_utils/configs/medusa.py.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "core/draft_tree.hpp"
#include "engine/checkpoint/model_weights.hpp"

namespace dculab::engine {

// One head: x = x + SiLU(layer x + bias) for each of its layers, then logits = lm_head x.
struct MedusaHead {
  std::vector<kernels::WeightView> layers;  // [hidden_size, hidden_size] each
  std::vector<kernels::WeightView> biases;  // F32, [hidden_size] each, without data where there is none
  kernels::WeightView lm_head;              // [rows of the token map, hidden_size]
};

// Head i guesses the token i + 2 places after the one whose last hidden state it reads: the model itself guesses the
// next. The views point into `memory`, or into the model's own head.
struct MedusaWeights {
  int hidden_size = 0;
  std::vector<MedusaHead> heads;
  std::vector<TokenId> token_map;  // of a row of lm_head; empty: row t is token t
  DraftShape shape;                // read_medusa_shape()
  std::shared_ptr<const void> memory;

  [[nodiscard]] int num_heads() const { return static_cast<int>(heads.size()); }
  [[nodiscard]] int num_rows() const { return heads.front().lm_head.rows; }
  [[nodiscard]] TokenId token_of(int row) const {
    return token_map.empty() ? row : token_map[static_cast<std::size_t>(row)];
  }
};

// The tree that the heads of a folder are to draft: speculative_token_tree of its config.json, else a chain of all of
// them. Throws InputError.
[[nodiscard]] DraftShape read_medusa_shape(const std::filesystem::path& folder);

// Throws InputError: no such files, heads for a model of other sizes, tensors that are missing, have another shape or
// an unsupported dtype, or are not finite. With original_lm_head all heads share lm_heads.0.weight, or `model`'s own
// head where the file has none.
[[nodiscard]] MedusaWeights load_medusa_weights(const std::filesystem::path& folder, const ModelWeights& model);

}  // namespace dculab::engine
