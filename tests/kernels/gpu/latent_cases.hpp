// Sizes and formats of latents that the GPU kernels are tested on.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.hpp"
#include "kernels/reference/reference_kernels.hpp"

namespace dculab::kernels::gpu {

// DeepSeek's, of fewer heads; and what nothing divides.
constexpr LatentSizes kOfDeepseek{20, 512, 128, 64, 128}, kOfFewValues{5, 40, 24, 24, 16};
constexpr Dtype kLatentCaches[] = {Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3, Dtype::fp8_e5m2};

inline std::size_t product_of(std::int64_t a, std::int64_t b) { return static_cast<std::size_t>(a * b); }

}  // namespace dculab::kernels::gpu
