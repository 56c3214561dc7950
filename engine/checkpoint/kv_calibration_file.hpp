// kv_cache.safetensors in a model's folder: of each layer "layers.N.k_centre" and "layers.N.k_half_range", F32
// [kv_width], and for B of 4, 3 and 2 "layers.N.k_levels.B" and "layers.N.v_levels.B", F32 [2^B], "layers.N.k_bounds.B"
// and "layers.N.v_bounds.B", F32 [2^B - 1].
//
// Fisher weights, which calibration reads: of each layer "layers.N.k_fisher" and "layers.N.v_fisher", F32 [tokens,
// kv_width], what squared errors of K (before rotary embedding) and V count. scripts/model/fisher.py writes them.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "engine/checkpoint/kv_calibration.hpp"

namespace dculab::engine {

inline constexpr const char* kKvCalibrationFile = "kv_cache.safetensors";

// Of the model in the folder; null where there is no such file. Throws InputError for one that does not fit the model,
// or holds what is not finite or levels or bounds that do not ascend.
[[nodiscard]] std::shared_ptr<const KvCalibration> load_kv_calibration(const std::filesystem::path& folder,
                                                                       const ModelShape& model);

// Whole or not at all. Throws InputError.
void write_kv_calibration(const KvCalibration& calibration, const std::filesystem::path& path);

// [tokens, kv_width] of a layer.
struct KvFisher {
  std::vector<float> k{}, v{};
};

// Throws InputError where they are missing or of another shape, or one is negative or not finite.
[[nodiscard]] KvFisher load_kv_fisher(const std::filesystem::path& path, int layer, std::size_t tokens, int kv_width);

}  // namespace dculab::engine
