// How our processes hand each other values through memory that they share: in pieces, each of which a rank writes into
// its slot before all meet and read what they need.
#pragma once

#include <cstddef>

#include "core/units.hpp"

namespace dculab::lower::shared_memory {

inline constexpr std::size_t kSlotBytes = 128 * 1024;  // of a piece

// How often ranks meet, where the one that hands over the most has `most` bytes.
[[nodiscard]] constexpr double meetings(Bytes most) {
  const auto bytes = static_cast<std::size_t>(most.value());
  return static_cast<double>((bytes + kSlotBytes - 1) / kSlotBytes);
}

}  // namespace dculab::lower::shared_memory
