// Writes a .safetensors file whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace dculab::engine {

struct TensorToWrite {
  std::string name;
  std::string dtype;                // "F32", "F16", "BF16", "I32", ...
  std::vector<std::int64_t> shape;  // slowest dimension first
  std::span<const std::byte> bytes;
};

// Tensors lie in the order of falling value size, so that each is aligned to its values. The metadata is
// {"format": "pt"}, which transformers asks for. Throws InputError when the
// file cannot be written, std::invalid_argument for tensors whose bytes contradict their shape or
// two of one name.
void write_safetensors(const std::filesystem::path& path, std::vector<TensorToWrite> tensors);

}  // namespace dculab::engine
