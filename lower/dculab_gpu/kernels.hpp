// Our GPU kernels (kernels/gpu): products in tiles of 128 x 128 (int4: 64 rows; fewer rows when m is small, where each
// weight is asked for once anyway), queries of a prefill in tiles of 64 rows (32 of heads above 160 values) of (token,
// head of the group), decode split as the step asks: geometry.hpp.
#pragma once

#include "lower/kernel_library.hpp"

namespace dculab::lower::dculab_gpu {

extern const lower::MatmulKernel kMatmul;
extern const AttentionKernel kAttention;

// Whether the vendor's library multiplies, as kernels/gpu/launch/matmul.cpp asks it to where the build has found it. On
// devices with matrix cores it is taken to be there.
[[nodiscard]] bool calls_library(const Op& op, const Device& device);

[[nodiscard]] AttentionTile attention_tile(const Op& op, const AttentionSplit& split);

}  // namespace dculab::lower::dculab_gpu
