// How fast the kernel that an op would use was seen to multiply, in FLOP of the product.
//
//   time per weight at m rows = 2 m / rate(m), linear in m between the rows that were measured;
//   below the first of them its time, above the last its rate
//
// That is what a pass over the weights plus work for each row makes of it. Weights of 2 and 3 bits are unpacked as
// those of 4 bits are, and take their rate.
#pragma once

#include <optional>

#include "core/op.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

// Nothing where the machine does not know the kernel. Precondition: a matmul.
[[nodiscard]] std::optional<FlopsPerSecond> matmul_rate(const Machine& machine, const Op& op);

// The rate at `rows` >= 1. Precondition: not empty.
[[nodiscard]] FlopsPerSecond rate_at(const RateByRows& rates, double rows);

}  // namespace dculab::sim
