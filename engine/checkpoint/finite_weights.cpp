#include "engine/checkpoint/finite_weights.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace dculab::engine {
namespace {

// A value whose exponent has all bits set is NaN or infinite. Blocks are copied since the format promises no alignment,
// and have no early end so that the compiler uses vectors: this keeps up with the memory.
template <class Word>
bool none_has_exponent(std::span<const std::byte> stored, Word exponent) {
  std::array<Word, 4096 / sizeof(Word)> block{};
  while (!stored.empty()) {
    const std::size_t bytes = std::min(stored.size(), sizeof block);
    std::memcpy(block.data(), stored.data(), bytes);
    stored = stored.subspan(bytes);
    unsigned found = 0;
    for (std::size_t index = 0; index < bytes / sizeof(Word); ++index)
      found |= static_cast<unsigned>((block[index] & exponent) == exponent);
    if (found != 0) return false;
  }
  return true;
}

}  // namespace

bool all_finite(std::span<const std::byte> stored, Dtype dtype) {
  if (dtype == Dtype::f32) return none_has_exponent<std::uint32_t>(stored, 0x7F800000);
  return none_has_exponent<std::uint16_t>(stored, dtype == Dtype::f16 ? 0x7C00 : 0x7F80);
}

}  // namespace dculab::engine
