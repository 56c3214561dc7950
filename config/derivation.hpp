// What a figure of a machine file follows: `per_unit_clock: 256 FLOP` and the like, in the place of its `value` or
// beside it.
#pragma once

#include <optional>
#include <string>

#include "config/machine_fields.hpp"
#include "config/map_reader.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::config {

// Whether the figure under `key` may follow others: peaks, and bandwidth and latency of memory.
[[nodiscard]] bool may_follow(const sim::Machine& machine, const std::string& key);

// Reads the derivation of the figure under `key`, whose map `reader` reads; reports that neither it nor
// a value stands there. Channels that it follows must have been read.
[[nodiscard]] std::optional<sim::Derivation> read_derivation(MapReader& reader, const sim::Machine& machine,
                                                             const std::string& key);

// Reports a stated value that is no share of what the design makes: twice too much or too little is a slip.
void check_share(MapReader& reader, const sim::Machine& machine, const std::string& key,
                 const sim::Derivation& derivation, double value);

// "per_unit_clock: 256 FLOP"
[[nodiscard]] std::string derivation_yaml(const sim::Machine& machine, const std::string& key,
                                          const sim::Derivation& derivation);

}  // namespace dculab::config
