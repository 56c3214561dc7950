// Numbers in files as eight bytes, the least one first on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dculab::config {

inline constexpr std::size_t kWordBytes = 8;

[[nodiscard]] inline std::string to_little_endian(std::uint64_t value) {
  std::string bytes(kWordBytes, '\0');
  for (std::size_t index = 0; index < kWordBytes; ++index) bytes[index] = static_cast<char>(value >> (8 * index));
  return bytes;
}

// Precondition: bytes.size() >= kWordBytes.
[[nodiscard]] inline std::uint64_t from_little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t index = kWordBytes; index-- > 0;) value = value << 8U | static_cast<unsigned char>(bytes[index]);
  return value;
}

}  // namespace dculab::config
