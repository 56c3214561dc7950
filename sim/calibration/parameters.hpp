// The figures of a machine and of the stack that runs there that calibration may change: shares of a peak, and times
// that no peak explains.
#pragma once

#include <span>
#include <string_view>
#include <variant>

#include "sim/hardware/figure_field.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

// One such figure, with what is believed about it before anything was measured: its value in the machine file is the
// centre of the prior, `log_sigma` its width (0.3 = a factor of 1.35 either way is plausible). An entry with a Prior in
// sim/hardware/machine_fields.hpp or stack_fields.hpp makes one.
struct Parameter : Prior {
  std::string_view key;  // see sim/hardware/figure.hpp: "sustained.dram_bandwidth", "stack.reached.overlap"
  std::variant<double Sustained::*, double Reached::*, Seconds Reached::*, Seconds Overheads::*> member;
};

[[nodiscard]] std::span<const Parameter> parameters();

// Whether the value is known, not a prior: each kernel of our own engine is counted.
[[nodiscard]] bool is_known(const Machine& machine, const Parameter& parameter);

// Whether steps measured on this machine can identify it: cold misses only where other tenants share a cache, the
// overhead of calls that are timed alone never, nor launches per kernel, which look like a longer launch.
[[nodiscard]] bool matters(const Machine& machine, const Parameter& parameter);

[[nodiscard]] double get(const Machine& machine, const Parameter& parameter);

// Stores `value`, held between lowest and highest; a figure that lies beyond them already stays where it is at most.
void set(Machine& machine, const Parameter& parameter, double value);

// `base` with each figure times exp(theta): one logarithm for each of parameters(). A time of which the base says 0 is
// taken for 0.1 us.
[[nodiscard]] Machine with_factors(const Machine& base, std::span<const double> theta);

// The machine with the stack's host times as its own: there they are fitted.
[[nodiscard]] Machine with_own_host(Machine machine);

// What a fit begins with: the base's figure, or 0.1 us.
[[nodiscard]] double prior_of(const Machine& base, const Parameter& parameter);

}  // namespace dculab::sim
