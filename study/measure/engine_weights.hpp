// The weights that the engine runs: a folder's own, or random ones of its shape.
#pragma once

#include <filesystem>
#include <string>

#include "core/dtype.hpp"
#include "engine/checkpoint/model_weights.hpp"

namespace dculab::study {

// Whether the folder holds any.
[[nodiscard]] bool has_weights(const std::filesystem::path& folder);

// `random_dtype` empty: loads the folder. Otherwise makes weights of its config.json's shape in that dtype.
[[nodiscard]] engine::ModelWeights load_or_make_weights(const std::filesystem::path& folder,
                                                        const std::string& random_dtype);

// The layers' matrices in `format`: the folder's own weights if it holds such, else random ones of its shape, which are
// as fast.
[[nodiscard]] engine::ModelWeights load_or_make_weights(const std::filesystem::path& folder, WeightFormat format);

}  // namespace dculab::study
