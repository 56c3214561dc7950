// What a figure of a machine file follows: `per_unit_clock: 256 FLOP` and the like, in the place of its `value` or
// beside it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "config/map_reader.hpp"
#include "sim/hardware/design.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::config {

// Figures of a machine file that may follow others: what a key beside `value` says.
enum class FigureKind : std::uint8_t { peak, own_bandwidth, shared_bandwidth, latency };

struct DerivationField {
  std::string_view key;
  FigureKind figure = FigureKind::peak;
  sim::Follows follows = sim::Follows::units_and_clock;
  std::optional<Dimension> dimension;  // of the rate; absent: a bare number
  Bounds bounds;
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

// Whether the figure under `key` may follow others: peaks, and bandwidth and latency of memory.
[[nodiscard]] bool may_follow(const sim::Machine& machine, const std::string& key);

// Reads the derivation of the figure under `key`, whose map `reader` reads; reports that neither it nor
// a value stands there. Channels that it follows must have been read.
[[nodiscard]] std::optional<sim::Derivation> read_derivation(MapReader& reader, const sim::Machine& machine,
                                                             const std::string& key);

// Reports a stated value that is no share of what the design makes: twice too much or too little is a slip.
void check_share(MapReader& reader, const sim::Machine& machine, const std::string& key,
                 const sim::Derivation& derivation, double value);

// Adds `per_unit_clock: 256 FLOP` to the map of the figure under `key`.
void add_derivation(Node& figure, const sim::Machine& machine, const std::string& key,
                    const sim::Derivation& derivation);

// The value, or what the machine read so far makes it.
template <class T>
void read_followed(MapReader& reader, sim::Machine& machine, const std::string& path, T& target, Bounds bounds) {
  const std::optional<sim::Derivation> derivation = read_derivation(reader, machine, path);
  if (derivation) machine.derivations[path] = *derivation;
  if (const Node* stated = reader.optional("value")) {
    reader.read(*stated, target, bounds);
    if (derivation && target.value() > 0) check_share(reader, machine, path, *derivation, target.value());
  } else if (derivation) {
    target = T(sim::derived_value(machine, path, *derivation));
    if (target.value() > 0 && !contains(bounds, target.value()))
      reader.complain(*reader.node(), path + ": " + short_text(target) + " follow, out of range; it must be " +
                                          describe(bounds, DimensionOf<T>::value));
  }
}

}  // namespace dculab::config
