// How fast the kernel that an op would use was seen to multiply.
//
//   a pass over the weights with m rows takes, per weight, 2 m / rate(m) from a cache,
//   per byte 1 / (share(m) * peak bandwidth) from DRAM: linear in m between the rows that were measured;
//   below the first of them its time, above the last in proportion to m
//   where rows of weights with few in-features were measured too, linear in 1 / k: a row costs something on top of its
//   in-features
//
// That is what a pass over the weights plus work for each row makes of it.
#pragma once

#include <optional>

#include "lower/launch.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

// In FLOP of the product, with weights in a cache. Nothing where the machine does not know the kernel.
[[nodiscard]] std::optional<FlopsPerSecond> matmul_rate(const Machine& machine, const lower::ProductShape& product);

// Of DRAM's peak bandwidth, with weights from there. What the fastest pass takes is loading, at the machine's
// dram_bandwidth; what more rows add to it is arithmetic, at matmul_compute. Nothing where the machine does not know
// the kernel.
[[nodiscard]] std::optional<double> matmul_dram_share(const Machine& machine, const lower::ProductShape& product);

// The figure at `rows` >= 1. Precondition: not empty.
[[nodiscard]] FlopsPerSecond rate_at(const RateByRows& rates, double rows);
[[nodiscard]] double share_at(const ShareByRows& shares, double rows);

}  // namespace dculab::sim
