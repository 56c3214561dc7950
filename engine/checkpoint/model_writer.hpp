// A model in memory as a Hugging Face folder: config.json, weights, tokenizer.
#pragma once

#include <filesystem>
#include <string>

#include "engine/checkpoint/model_weights.hpp"

namespace dculab::engine {

// config.json of the folder `source`, with the KV heads of `shape`: as num_key_value_heads where the family's own
// configuration has that; else, and where layers or groups differ, as docs/reference/model.md#groups-of-our-own.
// Throws InputError where neither says what `shape` is.
[[nodiscard]] std::string config_with_heads(const std::filesystem::path& source, const ModelShape& shape);

// Makes `folder`, whole or not at all. config.json is config_with_heads; tokenizer and generation configuration are
// copied from the folder `source`. The tensors keep their stored dtype, but for those that a load widens to F32; scales
// of an FP8 KV cache are written where the weights have them. Throws InputError.
void write_model(const std::filesystem::path& folder, const ModelWeights& weights, const std::filesystem::path& source);

}  // namespace dculab::engine
