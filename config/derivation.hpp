// What a figure of a machine file follows: `per_unit_clock: 256 FLOP` and the like, in the place of its `value` or
// beside it.
#pragma once

#include <optional>
#include <string>

#include "config/machine_fields.hpp"
#include "config/map_reader.hpp"
#include "sim/hardware/design.hpp"
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

// The value, or what the machine read so far makes it.
template <class T>
void read_followed(MapReader& reader, sim::Machine& machine, const std::string& path, T& target) {
  const std::optional<sim::Derivation> derivation = read_derivation(reader, machine, path);
  if (derivation) machine.derivations[path] = *derivation;
  if (const Node* stated = reader.optional("value")) {
    reader.read(*stated, target, allowed_figure<T>(path));
    if (derivation && target.value() > 0) check_share(reader, machine, path, *derivation, target.value());
  } else if (derivation) {
    target = T(sim::derived_value(machine, path, *derivation));
    const Range range = allowed_figure<T>(path);
    if (target.value() > 0 && !contains(range, target.value()))
      reader.complain(*reader.node(), path + ": " + short_text(target) + " follow, out of range; it must be " +
                                          describe(range, DimensionOf<T>::value));
  }
}

}  // namespace dculab::config
