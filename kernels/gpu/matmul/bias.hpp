// What the last pass of a product adds to each column of y.
#pragma once

#include "kernels/gpu/numbers.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// bias: [columns of y], or null.
__device__ __forceinline__ float bias_of(const float* bias, int column) {
  return bias == nullptr ? 0.0F : load(bias + column);
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
