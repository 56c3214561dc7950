// How long the arithmetic of an op keeps the compute units busy.
//
//   multiply = FLOP / (peak * efficiency)
//   vector   = (conversions * instructions each / conversion efficiency
//               + softmax scores * 10 instructions / attention efficiency) / vector lanes per second;
//                 beside them, of kernels without matrix instructions, those at the rate of pairs of 16 bits
//   time     = min over the instructions the machine has of
//                vector units:  multiply + vector                        one pipe does both
//                matrix cores:  max(multiply * padding, vector)          two pipes; rows padded to tiles
//              / share of the units, and of their SIMDs, that have work
//
// A matmul whose kernel was measured (Machine::matmul_rates) instead takes FLOP / (its rate * efficiency): conversions
// are in the rate. One row on matrix cores costs as much as a whole tile of them, so a matrix-vector product takes the
// vector path. What is converted, and into what: lower/matmul.hpp, lower/attention.hpp. A machine without integer
// products widens as ever.
#pragma once

#include "core/op.hpp"
#include "lower/launch.hpp"
#include "sim/compute/parallelism.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

struct ComputeTime {
  Seconds busy;   // expected
  Seconds floor;  // FLOP / highest peak that could be used
};

[[nodiscard]] ComputeTime compute_time(const Machine& machine, const Op& op, const lower::Launch& launch,
                                       const Parallelism& parallel);

}  // namespace dculab::sim
