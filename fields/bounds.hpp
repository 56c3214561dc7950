// Which numbers a key of a file may have, and whether it must be there.
#pragma once

#include <cstdint>
#include <limits>

namespace dculab {

enum class Necessity : std::uint8_t { required, optional };

enum class LowEnd : std::uint8_t { included, excluded };

// In core units: seconds, bytes, FLOP, cycles.
struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  LowEnd low_end = LowEnd::included;

  friend bool operator==(const Bounds&, const Bounds&) = default;
};

[[nodiscard]] constexpr Bounds between(double low, double high) { return {low, high, LowEnd::included}; }
[[nodiscard]] constexpr Bounds at_least(double low) { return {.low = low}; }
[[nodiscard]] constexpr Bounds above(double low) { return {.low = low, .low_end = LowEnd::excluded}; }
[[nodiscard]] constexpr Bounds fraction() { return {0, 1, LowEnd::excluded}; }

[[nodiscard]] constexpr bool contains(Bounds bounds, double value) {
  return (bounds.low_end == LowEnd::excluded ? value > bounds.low : value >= bounds.low) && value <= bounds.high;
}

}  // namespace dculab
