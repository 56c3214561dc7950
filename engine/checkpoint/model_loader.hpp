// A Hugging Face folder in, its weights out: every tensor present and of the right shape, matrices in their stored
// dtype, fused Q, K and V apart, biases in F32.
#pragma once

#include <cstdint>
#include <filesystem>

#include "engine/checkpoint/model_weights.hpp"

namespace dculab::engine {

enum class WeightMemory : std::uint8_t {
  huge_pages,  // copied once into 2 MB pages
  mapped,      // left in the mapped file: ready at once and shared through the page cache, but in 4 KB pages
};

// Reads `folder` (config.json and safetensors); quantized matrices are packed for the CPU kernels. Throws InputError
// naming file and tensor, also for a weight that is NaN or infinite. Huge pages are the default because decode is bound
// by streaming the weights, and 4 KB pages stream about a tenth slower.
[[nodiscard]] ModelWeights load_weights(const std::filesystem::path& folder,
                                        WeightMemory memory = WeightMemory::huge_pages);

}  // namespace dculab::engine
