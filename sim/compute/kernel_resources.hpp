// What the GPU kernel of an op asks of a compute unit: the compiled kernel's own figures (compiled_kernels.hpp), and
// where no kernel of ours is compiled for the machine, these:
//
// Registers per lane = fixed part (addresses, staging) + accumulators + operands kept across the loop:
//   matmul     32 + tile_rows * tile_columns / threads
//   decode     40 + 2 * heads * head_dim / wave_size            (accumulators and queries of the heads it serves)
//   prefill    64 + tokens * head_dim / threads                 (accumulators of a query tile)
// LDS:
//   matmul     2 * (tile_rows + tile_columns) * 32 values       (two stages of a slab of k)
//   decode     heads * (64 scores in F32 + a query)
//   prefill    a tile of K and one of V, 64 tokens each
// So a larger group costs registers and LDS, hence workgroups in flight. These are assumptions about kernels
// like vLLM's paged attention and a tiled GEMM.
#pragma once

#include "core/op.hpp"
#include "sim/compute/occupancy.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

[[nodiscard]] KernelResources kernel_resources(const Machine& machine, const Op& op);

// How often the op asks for its first operand of that role, a matmul for each weight once per row tile (a bias is a
// weight too, and comes later); 1 where it has none.
[[nodiscard]] double requests_of(const Op& op, OperandRole role);

// Tile of y that one workgroup of a matmul computes, from how often each operand is asked for.
struct MatmulTile {
  double rows = 1;
  double columns = 1;
};
[[nodiscard]] MatmulTile matmul_tile(const Op& op);

// Workgroups that compute a tile together, each on its own unit (on NVIDIA a cluster): sums in F32 leave half of a
// unit's registers to operands and addresses, so a tile of 256 x 256 takes two units of 256 KiB.
[[nodiscard]] double workgroups_per_tile(const Machine& machine, const Op& op);

// Workgroups of a matmul that is not split along k.
[[nodiscard]] double tile_workgroups(const Machine& machine, const Op& op);

}  // namespace dculab::sim
