// The weights that the engine runs: a folder's own, or random ones of its shape.
#pragma once

#include <filesystem>
#include <string>

#include "engine/checkpoint/llama_weights.hpp"

namespace dculab::cli {

// `random_dtype` empty: loads the folder. Otherwise makes weights of its config.json's shape in that dtype.
[[nodiscard]] engine::LlamaWeights load_or_make_weights(const std::filesystem::path& folder,
                                                        const std::string& random_dtype);

}  // namespace dculab::cli
