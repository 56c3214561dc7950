// How each operand of an op is re-used: the reuse distances that hit_rate.hpp asks for, from the op's tiling.
//
// Footprints:
//   workgroup   = sum of unique * requests over the operands read / workgroups
//   in flight   = sum over operands of concurrent workgroups * workgroup share / workgroups that share it
// Concurrent sharers: a matmul's workgroups in flight form a patch of a * b tiles, as square as the grid allows, so
// b of them share each tile of x and a of them each tile of w. Attention workgroups over the same KV are neighbours.
// First touch: weights and KV come back once per step (distance: the step's footprint); activations and outputs
// belong to the neighbouring op (distance: twice their bytes); block tables are read once per layer.
// Sweeps: a matmul keeps the larger operand's patch and sweeps the smaller operand past it.
#pragma once

#include <array>

#include "core/op.hpp"
#include "lower/launch.hpp"
#include "sim/compute/parallelism.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/memory/hit_rate.hpp"

namespace dculab::sim {

// [launch.num_accesses]. `step_footprint`: distinct weight and KV bytes of the whole step.
[[nodiscard]] std::array<Reuse, kMaxOperands> reuse_of(const Machine& machine, const Op& op,
                                                       const lower::Launch& launch, const Parallelism& parallel,
                                                       Bytes step_footprint);

}  // namespace dculab::sim
