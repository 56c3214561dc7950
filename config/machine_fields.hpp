// What figures of machine files may be, and those that follow others; the figures are sim/hardware/machine_fields.hpp.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <variant>

#include "config/map_reader.hpp"
#include "sim/hardware/machine_fields.hpp"

namespace dculab::config {

// Each count fits an int with room to spare; products of them are taken as doubles.
inline constexpr double kLargestFigureCount = 1 << 20;

// Figures that have bounds of their own, by how their keys end.
struct FigureBounds {
  std::string_view key_end;
  Range range;
};
inline constexpr std::array<FigureBounds, 16> kFigureBounds{{
    {"latency", between(1e-12, 1e3)},  // of memory levels, and of links
    {".kept_for", between(1e-12, 1e3)},
    {"collective_start", between(1e-12, 1e3)},
    {".outstanding", between(0, kLargestFigureCount)},
    {".simds_per_unit", between(1, 1024)},  // the product of these two counts waves
    {".max_waves_per_simd", between(1, 1024)},
    {"kernels_per_op", between(0.1, 100)},  // of stacks, from here on
    {".decode_sequences", between(0, kLargestFigureCount)},
    {".prefill_tokens", between(0, kLargestFigureCount)},
    {".activation_scale", between(1, 64)},
    {".bytes_per_score", between(0, 64)},
    {".bytes_per_widened_weight", between(0, 64)},
    {".widened_from_rows", between(0, kLongestContext)},
    {".half_kernels", between(0, kLargestFigureCount)},
    {".scored_entries", between(0, kLongestContext)},
    {".bytes_per_absorbed_weight", between(0, 4)},
}};

// What the figure under `key` of a machine file or a stack file may be: a few orders of magnitude more than any
// hardware has, so that whatever is computed from them is finite.
template <class T>
constexpr Range allowed_figure(std::string_view key) {
  for (const FigureBounds& bounds : kFigureBounds)
    if (key.ends_with(bounds.key_end)) return bounds.range;
  if constexpr (std::is_same_v<T, int>) return between(1, kLargestFigureCount);
  if constexpr (std::is_same_v<T, double>) return between(1e-4, 1);            // shares
  if constexpr (std::is_same_v<T, Seconds>) return between(0, 1e3);            // overheads
  if constexpr (std::is_same_v<T, Bytes>) return between(1, 0x1p50);           // 1024 TiB
  if constexpr (std::is_same_v<T, Hertz>) return between(1e3, 1e12);           // 1 kHz, 1000 GHz
  if constexpr (std::is_same_v<T, BytesPerSecond>) return between(1e3, 1e20);  // 1 kB/s, 10^8 TB/s
  if constexpr (std::is_same_v<T, FlopsPerSecond>) return between(1e3, 1e21);  // 1 kFLOP/s, 10^6 PFLOP/s
}

using sim::Field;
using sim::kLevel;
using sim::kOverheads;
using sim::kSustained;
using sim::kWaves;
using sim::Necessity;

// What a scenario may call the clock that the file has; the file's `clock_states` have names of their own.
inline constexpr std::string_view kDefaultClock = "default";

// Figures of a machine file that may follow others: what a key beside `value` says.
enum class FigureKind : std::uint8_t { peak, own_bandwidth, shared_bandwidth, latency };

struct DerivationField {
  std::string_view key;
  FigureKind figure = FigureKind::peak;
  sim::Follows follows = sim::Follows::units_and_clock;
  std::optional<Dimension> dimension;  // of the rate; absent: a bare number
  Range range;
  std::string_view words;  // "256 FLOP per unit and clock"
};

inline constexpr std::array<DerivationField, 5> kDerivations{{
    {"per_unit_clock", FigureKind::peak, sim::Follows::units_and_clock, Dimension::flop, between(1e-3, 1e9),
     "per unit and clock"},
    {"per_unit_clock", FigureKind::own_bandwidth, sim::Follows::units_and_clock, Dimension::bytes, between(1e-3, 1e9),
     "per unit and clock"},
    {"per_channel_clock", FigureKind::shared_bandwidth, sim::Follows::channels_and_clock, Dimension::bytes,
     between(1e-3, 1e9), "per channel and clock"},
    {"per_channel", FigureKind::shared_bandwidth, sim::Follows::channels, Dimension::bandwidth, between(1e3, 1e20),
     "per channel"},
    {"clocks", FigureKind::latency, sim::Follows::clock, std::nullopt, between(1e-3, 1e9), "clocks"},
}};

}  // namespace dculab::config
