// What our GPU kernels ask memory for, tensor by tensor.
//
// An op's operands are what must be touched; the kernels ask for more, and in an order of their own:
//   embedding       the residual is F32, and each workgroup reads its token's number
//   norms           a workgroup a row: the residual is F32, read once more for the result (of layer_norm twice), and
//                   all rows ask for the weight
//   rope_and_cache  rotates Q and K where they are, by cosines and sines in F32; a second kernel reads K again, and
//                   V; of a KIVI cache only the tokens of complete groups, which new tokens and residuals have. Of an
//                   int8 cache a token's scale of a head is 4 bytes of a line of its own, or of its neighbours. New
//                   sinks are read before, and kept in F32
//   products        x once per tile of columns, w once per tile of rows; tiles start row tiles first, of int4 column
//                   tiles first. A slab of k is 64 bytes of a row, of bf16 weights with f16 activations 32 (on matrix
//                   cores 32 values), so that a longer line is asked for several times. Of experts likewise, where each
//                   weight is asked for by the tiles of its expert, and x, where it is rows of tokens, by as many tiles
//                   as a token has experts
//   critical blocks the keys just cached, and bounds that widen; for the choice all bounds, and the bounds of products
//                   five times
//   route_tokens    logits in F32; a second kernel reads all choices twice for each expert, and writes what sorts them
// Read off kernels/gpu, and held against recorded addresses by tests/replay.
#pragma once

#include "core/op.hpp"
#include "lower/dculab_gpu/kernel_id.hpp"
#include "lower/dculab_gpu/matrix_cores.hpp"
#include "lower/launch.hpp"

namespace dculab::lower::dculab_gpu {

// Fills in `streams`, which are empty; they stay so for attention, activations, and where no kernel of ours runs the
// op (Kernel::none). `parts`: of a product, along k; up to 1: not split.
void add_streams(Streams& streams, const Op& op, const KernelId& kernel, Units units, double parts);

// The partial sums in F32 of a product that is split into `parts`: they are written, and read by a second kernel, which
// writes y. A price has them on their own (sim/compute/split_k.hpp).
void add_sums(Streams& streams, const Op& op, double parts);

}  // namespace dculab::lower::dculab_gpu
