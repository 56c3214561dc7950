#include "sim/hardware/design.hpp"

#include <algorithm>
#include <variant>

#include "sim/hardware/figure.hpp"

namespace dculab::sim {
namespace {

constexpr std::string_view kUnits = "compute_units", kClock = "clock", kMemory = "memory.", kChannels = ".channels";

// "memory.L2.bandwidth" -> "memory.L2.channels"
[[nodiscard]] std::string channels_of(std::string_view key) {
  return std::string(key.substr(0, key.rfind('.'))).append(kChannels);
}

[[nodiscard]] bool follows(std::string_view key, Follows what, std::string_view driver) {
  switch (what) {
    case Follows::units_and_clock:
      return driver == kUnits || driver == kClock;
    case Follows::channels_and_clock:
      return driver == kClock || driver == channels_of(key);
    case Follows::channels:
      return driver == channels_of(key);
    case Follows::clock:
      return driver == kClock;
  }
  return false;
}

void multiply(Machine& machine, const std::string& key, double factor) {
  const std::optional<Figure> figure = find_figure(machine, key);
  if (!figure) return;
  std::visit(
      [factor](auto* value) {
        if constexpr (requires { value->value(); }) *value *= factor;
      },
      *figure);
}

// Scales the part of a latency that is `clocks` clocks; the rest stays.
void add_clocks(Machine& machine, const std::string& key, double clocks, Hertz before) {
  const std::optional<Figure> figure = find_figure(machine, key);
  if (!figure) return;
  const Cycles cycles(clocks);
  *std::get<Seconds*>(*figure) += cycles / machine.clock - cycles / before;
}

}  // namespace

bool is_driver(std::string_view key) {
  return key == kUnits || key == kClock || (key.starts_with(kMemory) && key.ends_with(kChannels));
}

double derived_value(const Machine& machine, std::string_view key, const Derivation& derivation) {
  const double clock = machine.clock.value();
  const double channels = figure_value(machine, channels_of(key)).value_or(0);
  switch (derivation.follows) {
    case Follows::units_and_clock:
      return machine.compute_units * clock * derivation.rate;
    case Follows::channels_and_clock:
      return channels * clock * derivation.rate;
    case Follows::channels:
      return channels * derivation.rate;
    case Follows::clock:
      return derivation.rate / clock;
  }
  return 0;
}

std::vector<std::string> followers(const Machine& machine, std::string_view driver) {
  std::vector<std::string> keys;
  for (const auto& [key, derivation] : machine.derivations)
    if (follows(key, derivation.follows, driver)) keys.push_back(key);
  return keys;
}

void follow(Machine& machine, std::string_view driver, double before, Following following) {
  const std::optional<double> now = figure_value(machine, driver);
  if (!now || *now == before || before <= 0) return;
  const bool is_other = following == Following::all;
  if (is_other && driver == kUnits && machine.stated_units == 0) machine.stated_units = static_cast<int>(before);
  for (const std::string& key : followers(machine, driver)) {
    const Derivation& derivation = machine.derivations.at(key);
    if (derivation.is_stated && !is_other) continue;
    if (derivation.follows == Follows::clock)
      add_clocks(machine, key, derivation.rate, Hertz(before));
    else
      multiply(machine, key, *now / before);
  }
}

int sharing_units(const Machine& machine) {
  return machine.stated_units == 0 ? machine.compute_units : std::min(machine.stated_units, machine.compute_units);
}

}  // namespace dculab::sim
