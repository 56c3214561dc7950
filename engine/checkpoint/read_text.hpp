// The text files of a model's folder.
#pragma once

#include <cstddef>
#include <string>

#include "files/input.hpp"

namespace dculab::engine {

inline constexpr std::size_t kLargestModelText = 100'000'000;  // bytes, as of the header of a .safetensors file

// A whole file as text. Throws InputError when it cannot be read, is no regular file or is too large.
[[nodiscard]] inline std::string read_text(const std::string& path) {
  return files::read_text(path, kLargestModelText);
}

}  // namespace dculab::engine
