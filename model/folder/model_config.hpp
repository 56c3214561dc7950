// What a model folder's JSON says: the model's shape (config.json), how its matrices are quantized, and how its authors
// sample from it (generation_config.json). The weights need not be there.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "core/batch.hpp"
#include "core/request.hpp"
#include "model/model_shape.hpp"
#include "model/quantization_config.hpp"

namespace dculab {

// How a file of a model in GGUF ends.
inline constexpr const char* kGgufSuffix = ".gguf";

// `path` is a folder with config.json, or such a file, or a model in GGUF, of which the header is read. Throws
// InputError: file, line, what is not supported.
[[nodiscard]] ModelShape read_model_shape(const std::filesystem::path& path);

// Of a model folder: config.json, or quantize_config.json when config.json does not say.
[[nodiscard]] std::optional<QuantizationConfig> read_quantization_config(const std::filesystem::path& folder);

struct GenerationConfig {
  SamplingParams sampling;             // greedy unless do_sample is true
  std::vector<TokenId> eos_token_ids;  // any of them ends the text
  std::optional<TokenId> bos_token_id;
};

// Reads `folder`/generation_config.json; what it lacks comes from config.json, then from Hugging Face's defaults.
[[nodiscard]] GenerationConfig read_generation_config(const std::filesystem::path& folder);

}  // namespace dculab
