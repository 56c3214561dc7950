// How the kernels behind published figures tile: vendors' GEMM libraries and FlashAttention, not this project's own.
//
//   matmul   128 x 256, the most efficient of cuBLAS: NVIDIA, "Matrix multiplication background", section 3
//   prefill  128 query tokens a workgroup, decode: the whole group in one workgroup, contexts split so that the
//            machine is full: FlashAttention, csrc/flash_attn/flash_api.cpp, num_splits_heuristic
#pragma once

#include "core/batch.hpp"
#include "core/engine_options.hpp"
#include "core/model_shape.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

// Into how many parts FlashAttention splits each context: the fewest that reach 85 % of the best wave efficiency.
//   workgroups: without a split; slots: two per compute unit; pieces: blocks of 128 tokens in the context.
[[nodiscard]] int flash_splits(int workgroups, int slots, int pieces);

// The tiling of `batch`'s step on a GPU; on a CPU the engine's own.
[[nodiscard]] KernelTiling library_tiling(const Machine& machine, const ModelShape& model, const Batch& batch);

}  // namespace dculab::sim
