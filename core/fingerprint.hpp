// A 64-bit fingerprint of bytes: tells apart what was not meant to differ. Not against an adversary.
//
// FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/
#pragma once

#include <cstdint>
#include <string_view>

namespace dculab {

// `start` is the fingerprint of what came before.
[[nodiscard]] constexpr std::uint64_t fingerprint(std::string_view bytes, std::uint64_t start = 0xcbf29ce484222325U) {
  for (const char byte : bytes) start = (start ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
  return start;
}

}  // namespace dculab
