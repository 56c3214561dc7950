// What both attention kernels make of a score, what their softmax starts from, and what it leaves out.
#pragma once

#include <cmath>

#include "kernels/gpu/args.hpp"
#include "kernels/gpu/runtime.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// The largest score before there is one: less than every score, and finite, so that differences are numbers.
inline constexpr float kNoScore = -3e38F;

// The score of a token that is not attended to: e^(kMaskedScore - largest) is 0, for kNoScore too.
inline constexpr float kMaskedScore = -INFINITY;

// The weights of prefill's softmax, relative to the largest of a row, times 2^15: as halves they are normal down to
// 2^-29.
inline constexpr float kWeightScaleLog = 15 * 0.693147181F;

// Off by size * 2^-23 at most.
__device__ __forceinline__ float capped(float score, const ScoreCap& cap) {
  if (cap.size == 0) return score;
  return cap.size * (1 - 2 * fast_reciprocal(1 + fast_exp(cap.steepness * score)));
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
