// A model in memory as a Hugging Face folder: config.json, weights, tokenizer.
#pragma once

#include <filesystem>

#include "engine/checkpoint/model_weights.hpp"

namespace dculab::engine {

// Makes `folder`, whole or not at all. config.json is that of the folder `source` with the KV heads of `weights`;
// tokenizer and generation configuration are copied from there. The tensors keep their stored dtype.
// Throws InputError.
void write_model(const std::filesystem::path& folder, const ModelWeights& weights, const std::filesystem::path& source);

}  // namespace dculab::engine
