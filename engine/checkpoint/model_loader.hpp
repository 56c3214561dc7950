// A Hugging Face Llama folder in, its weights out: every tensor present, of the right shape, in its stored dtype.
#pragma once

#include <cstdint>
#include <filesystem>

#include "engine/checkpoint/llama_weights.hpp"

namespace dculab::engine {

enum class WeightMemory : std::uint8_t {
  huge_pages,  // copied once into 2 MB pages
  mapped,      // left in the mapped file: ready at once and shared through the page cache, but in 4 KB pages
};

// Reads `folder` (config.json and safetensors). Throws InputError naming file and tensor. Huge pages are the default
// because decode is bound by streaming the weights, and 4 KB pages stream about a tenth slower.
[[nodiscard]] LlamaWeights load_weights(const std::filesystem::path& folder,
                                        WeightMemory memory = WeightMemory::huge_pages);

}  // namespace dculab::engine
