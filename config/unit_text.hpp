// Quantities as people write them: "1024 GB/s", "16 GiB", "80 ns". The one unit table of the program.
//
// GB = 1e9 bytes and GiB = 2^30 bytes. Symbols are case-sensitive, so that "Gb" is never taken for "GB".
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/units.hpp"

namespace dculab::config {

enum class Dimension { bytes, seconds, flop, frequency, bandwidth, flop_rate, power, energy };

struct Unit {
  Dimension dimension;
  std::string_view symbol;
  double factor;  // in bytes, seconds, FLOP, cycles, watts and joules
};

// Every unit that is accepted, grouped by dimension, smallest first.
[[nodiscard]] std::span<const Unit> units();

// The number in core units. Throws InputError that says what is wrong with the text, without a place.
[[nodiscard]] double parse_in(Dimension dimension, std::string_view text);

// For files: reads back as the same double.
[[nodiscard]] std::string exact_text(Dimension dimension, double value);

// For reports: three significant digits in the unit that suits, "12.3 us", "1.23 GiB", "768 GB/s".
[[nodiscard]] std::string short_text(Dimension dimension, double value);

template <class Quantity>
struct DimensionOf;
template <>
struct DimensionOf<Bytes> {
  static constexpr Dimension value = Dimension::bytes;
};
template <>
struct DimensionOf<Seconds> {
  static constexpr Dimension value = Dimension::seconds;
};
template <>
struct DimensionOf<FlopCount> {
  static constexpr Dimension value = Dimension::flop;
};
template <>
struct DimensionOf<Hertz> {
  static constexpr Dimension value = Dimension::frequency;
};
template <>
struct DimensionOf<BytesPerSecond> {
  static constexpr Dimension value = Dimension::bandwidth;
};
template <>
struct DimensionOf<FlopsPerSecond> {
  static constexpr Dimension value = Dimension::flop_rate;
};
template <>
struct DimensionOf<Watts> {
  static constexpr Dimension value = Dimension::power;
};
template <>
struct DimensionOf<Joules> {
  static constexpr Dimension value = Dimension::energy;
};

template <class Quantity>
[[nodiscard]] Quantity parse_quantity(std::string_view text) {
  return Quantity(parse_in(DimensionOf<Quantity>::value, text));
}

template <class Quantity>
[[nodiscard]] std::string exact_text(Quantity quantity) {
  return exact_text(DimensionOf<Quantity>::value, quantity.value());
}

template <class Quantity>
[[nodiscard]] std::string short_text(Quantity quantity) {
  return short_text(DimensionOf<Quantity>::value, quantity.value());
}

}  // namespace dculab::config
