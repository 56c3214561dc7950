// Products: y[m, n] = x[m, k] w[n, k]^T.
//
// A workgroup computes a tile of y; x is asked for once per column of tiles, w once per row of them. Where no kernel of
// ours is compiled for the device, a workgroup asks for
//   registers  32 + tile_rows * tile_columns / threads          (addresses, staging; accumulators)
//   LDS        2 * (tile_rows + tile_columns) * 32 values       (two stages of a slab of k)
// and, where the library is known to choose among tiles (MatmulKernel::slabs), a thread has 16 values of its tile, up
// to 256 threads. Such a workgroup fetches x and w by slabs of k, which latency_time of sim/memory/bandwidth.hpp
// prices. Sums in F32 leave half of a unit's registers to operands and addresses: a tile of 256 x 256 takes a cluster
// of two units of 256 KiB.
//
// A matrix-vector product (MatmulKernel::gemv_rows) has no tiles: its kernel hands out rows of w
// until the device is full, on a CPU its columns. Tiles that are fewer than what runs at a time may be split along k,
// into parts of at least 256 values, as GEMM libraries do (CUTLASS, media/docs/efficient_gemm.md, "Split K").
//
// Each weight is converted once per row tile. Matrix cores pad rows to tiles of 16, so one row costs as much as
// sixteen. Instructions of integer products (ActivationMode::int8) beside the products themselves:
//   weights of less than 8 bits * 0.5 (unpacking) + activations * 4 (rounding) + m * n * k / group * 3 (scaling sums)
#pragma once

#include "core/op.hpp"
#include "lower/device.hpp"
#include "lower/kernel_library.hpp"
#include "lower/launch.hpp"

namespace dculab::lower {

// Instructions beside integer products of `rows` rows, padding too, of which op.m are rounded; `weights` are unpacked.
[[nodiscard]] double integer_instructions(const Op& op, double rows, double weights);

// Whether the op's activations are multiplied in fewer bits than they are written in.
[[nodiscard]] bool rounds_activations(const Op& op);

// The op that reads rounded activations. Where a kernel before rounds them, the launch gets it and the bytes it moves.
[[nodiscard]] Op with_rounded_activations(const Op& op, Rounding by, Launch& launch);

// Fills in a launch that asks for each byte once.
void lower_matmul(const Op& op, const MatmulKernel& kernel, const Device& device, Launch& launch);

}  // namespace dculab::lower
