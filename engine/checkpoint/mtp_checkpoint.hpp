// DeepSeek's multi-token prediction: the layer of a checkpoint behind its last, which guesses the token after the next
// from the model's hidden state and the next token (DeepSeek-V3, arXiv:2412.19437, section 2.2).
#pragma once

#include <filesystem>

#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/model_weights.hpp"

namespace dculab::engine {

// x = eh_proj [enorm(embedding of the next token); hnorm(hidden state)], then a layer of the model's last kind; its
// logits are the model's head over shared_head.norm.
struct MtpWeights {
  ModelWeights layer;  // a model of this one layer: final_norm is shared_head.norm, embedding and head are the model's
  kernels::WeightView enorm, hnorm;  // [hidden_size]
  kernels::WeightView eh_proj;       // [hidden_size, 2 * hidden_size]
};

// The first such layer of the folder that `model` was loaded from. Throws InputError where config.json
// (num_nextn_predict_layers) has none, and as load_weights.
[[nodiscard]] MtpWeights load_mtp_weights(const std::filesystem::path& folder, WeightMemory memory,
                                          const ModelWeights& model);

}  // namespace dculab::engine
