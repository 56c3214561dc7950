// Streams of what writes the KV cache, and of the ops of its policies.
#pragma once

#include <cmath>

#include "core/op.hpp"
#include "lower/dculab_gpu/kernel_id.hpp"
#include "lower/launch.hpp"

namespace dculab::lower::dculab_gpu {

constexpr double kLayerPiece = 2048;  // numbers of a row that a workgroup serves (kernels/gpu/layers/layers.hip.hpp)
constexpr Bytes kPosition{4};         // of a token's number or position

[[nodiscard]] inline double pieces(double values) { return std::ceil(values / kLayerPiece); }

// Of each token, that `workgroups` of them read.
[[nodiscard]] Stream lookups(const Op& op, Bytes entry, double workgroups);

// `op` is rope_and_cache, shift_sink_keys, update_block_bounds or choose_critical_blocks.
void add_kv_op(Streams& streams, const Op& op, const KernelId& kernel);

}  // namespace dculab::lower::dculab_gpu
