// kv_cache.safetensors in a model's folder: of each layer "layers.N.k_centre" and "layers.N.k_half_range", F32
// [kv_width], and "layers.N.k_levels.B" and "layers.N.v_levels.B", F32 [2^B], for B of 4, 3 and 2.
#pragma once

#include <filesystem>
#include <memory>

#include "engine/kv/kv_calibration.hpp"

namespace dculab::engine {

inline constexpr const char* kKvCalibrationFile = "kv_cache.safetensors";

// Of the model in the folder; null where there is no such file. Throws InputError for one that does not fit the model,
// or holds what is not finite or levels that do not ascend.
[[nodiscard]] std::shared_ptr<const KvCalibration> load_kv_calibration(const std::filesystem::path& folder,
                                                                       const ModelShape& model);

// Whole or not at all. Throws InputError.
void write_kv_calibration(const KvCalibration& calibration, const std::filesystem::path& path);

}  // namespace dculab::engine
