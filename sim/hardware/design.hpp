// A machine as a design: which figures follow its compute units, its clock and the channels of its memory.
//
//   peaks                       units x clock x FLOP per unit and clock
//   bandwidth, a unit's cache   units x clock x bytes per unit and clock
//   bandwidth, shared           channels x clock x bytes per channel and clock, or channels x bytes per second
//   latency                     clocks / clock + what lies beyond the clock's domain
//
// A published or measured figure is a share of the product and keeps that share: 192 TFLOP/s of 120 units x 1024 FLOP x
// 1.6 GHz are 0.977 of it, with 60 units as with 120.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/hardware/machine.hpp"

namespace dculab::sim {

// "compute_units", "clock", "memory.L2.channels": what other figures may follow.
[[nodiscard]] bool is_driver(std::string_view key);

// What `derivation` makes of the design for the figure under `key`, in core units; 0 where the level has no channels.
[[nodiscard]] double derived_value(const Machine& machine, std::string_view key, const Derivation& derivation);

// The keys of the figures that follow `driver`.
[[nodiscard]] std::vector<std::string> followers(const Machine& machine, std::string_view driver);

// Which figures move with what they follow.
enum class Following : std::uint8_t {
  all,      // another design: each keeps its share
  unstated  // the same machine, where the file may be wrong: what was published or measured stays
};

// Lets the followers follow, after the figure under `driver` has changed from `before`.
void follow(Machine& machine, std::string_view driver, double before, Following following = Following::all);

// Among how many compute units a level that all share divides its bandwidth when each draws alone. A unit draws in a
// machine with more of them what it drew before: it is the same unit.
[[nodiscard]] int sharing_units(const Machine& machine);

}  // namespace dculab::sim
