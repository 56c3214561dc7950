// How long the arithmetic of an op keeps the compute units busy.
//
//   multiply = FLOP / (peak * efficiency)
//   vector   = (conversions * instructions each / conversion efficiency
//               + softmax scores * 10 instructions / attention efficiency) / vector lanes per second
//   time     = min over the instructions the machine has of
//                vector units:  multiply + vector                        one pipe does both
//                matrix cores:  max(multiply * padding, vector)          two pipes; rows padded to tiles
//              / share of the units that have work
//
// A matmul whose kernel was measured (Machine::matmul_rates) instead takes FLOP / (its rate * efficiency): conversions
// are in the rate. Tiles have 16 rows, so one row on matrix cores costs as much as sixteen, and a matrix-vector product
// takes the vector path. Decode attention on NVIDIA has tiles of 64, whatever the group: FlashAttention's kBlockM,
// which is the wgmma instruction's own (csrc/flash_attn/src/flash_fwd_launch_template.h, run_mha_fwd_splitkv_dispatch;
// hopper/tile_size.h). Conversions: each weight once per row tile, each KV value once per workgroup that loads it. With
// ActivationMode::int8 the products are integers where the machine multiplies int8, and what is converted is
//   weights of less than 8 bits * 0.5 (unpacking) + activations * 4 (rounding) + m * n * k / group * 3 (scaling sums)
// A machine without integer products widens as ever.
// A score costs about 10 instructions: scale, maximum, subtraction, exponential, sum (measured exponentials of
// vectorised math libraries are 6 to 10).
#pragma once

#include "core/op.hpp"
#include "sim/compute/parallelism.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

struct ComputeTime {
  Seconds busy;   // expected
  Seconds floor;  // FLOP / highest peak that could be used
};

[[nodiscard]] ComputeTime compute_time(const Machine& machine, const Op& op, const Parallelism& parallel);

}  // namespace dculab::sim
