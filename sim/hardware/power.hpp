// Power and energy, and what a device draws. They are types of their own beside core/units.hpp: nothing that runs a
// model has them.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"

namespace dculab::sim {

// A double with a unit, "W" or "J".
template <class Unit>
class Amount {
 public:
  static constexpr std::string_view symbol = Unit::symbol;

  constexpr Amount() = default;
  constexpr explicit Amount(double value) : value_(value) {}

  // In watts or joules.
  [[nodiscard]] constexpr double value() const { return value_; }

  constexpr Amount& operator+=(Amount other) {
    value_ += other.value_;
    return *this;
  }

  constexpr Amount& operator*=(double factor) {
    value_ *= factor;
    return *this;
  }

  friend constexpr Amount operator+(Amount a, Amount b) { return Amount(a.value_ + b.value_); }
  friend constexpr Amount operator-(Amount a, Amount b) { return Amount(a.value_ - b.value_); }
  friend constexpr Amount operator*(Amount a, double b) { return Amount(a.value_ * b); }
  friend constexpr Amount operator*(double a, Amount b) { return Amount(a * b.value_); }
  friend constexpr Amount operator/(Amount a, double b) { return Amount(a.value_ / b); }
  friend constexpr double operator/(Amount a, Amount b) { return a.value_ / b.value_; }
  friend constexpr auto operator<=>(Amount, Amount) = default;

 private:
  double value_ = 0;
};

struct WattUnit {
  static constexpr std::string_view symbol = "W";
};
struct JouleUnit {
  static constexpr std::string_view symbol = "J";
};
using Watts = Amount<WattUnit>;
using Joules = Amount<JouleUnit>;

[[nodiscard]] constexpr Joules operator*(Watts power, Seconds time) { return Joules(power.value() * time.value()); }
[[nodiscard]] constexpr Joules operator*(Seconds time, Watts power) { return power * time; }
[[nodiscard]] constexpr Watts operator/(Joules energy, Seconds time) { return Watts(energy.value() / time.value()); }

// Of one device, without the server around it. A step's energy needs all three (sim/cost/energy.hpp).
struct Power {
  std::optional<Watts> idle;           // a model in memory, clocks up, nothing running
  std::optional<Watts> memory_bound;   // DRAM streams at the rate that it sustains, and little is computed
  std::optional<Watts> compute_bound;  // matrix units busy: as a rule the limit of the board

  [[nodiscard]] bool is_stated() const { return idle && memory_bound && compute_bound; }
};

// What keeps the figures from being a device's, one sentence each.
[[nodiscard]] std::vector<std::string> problems(const Power& power);

}  // namespace dculab::sim
