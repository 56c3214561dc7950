// What the softmax of both attention kernels starts from, and what it leaves out.
#pragma once

#include <cmath>

#include "kernels/gpu/runtime.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// The largest score before there is one: less than every score, and finite, so that differences are numbers.
inline constexpr float kNoScore = -3e38F;

// The score of a token that is not attended to: e^(kMaskedScore - largest) is 0, for kNoScore too.
inline constexpr float kMaskedScore = -INFINITY;

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
