// What a model folder's JSON says: the model's shape (config.json), and how its authors sample from it
// (generation_config.json). The weights need not be there.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/batch.hpp"
#include "core/request.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

// `path` is a folder with config.json, or such a file. Throws InputError: file, line, what is not supported.
[[nodiscard]] ModelShape read_model_shape(const std::filesystem::path& path);

struct GenerationConfig {
  SamplingParams sampling;             // greedy unless do_sample is true
  std::vector<TokenId> eos_token_ids;  // any of them ends the text
  std::optional<TokenId> bos_token_id;
};

// Reads `folder`/generation_config.json; what it lacks comes from config.json, then from Hugging Face's defaults.
[[nodiscard]] GenerationConfig read_generation_config(const std::filesystem::path& folder);

}  // namespace dculab::engine
