// Which rows of x a product multiplies: the i-th is row number(i) of x, and begins at row(i).
#pragma once

#include <cstdint>

#include "kernels/gpu/runtime.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// One after the other, `stride` values apart.
template <typename X>
struct StridedRows {
  const X* data;
  int stride;

  __device__ __forceinline__ static int number(int index) { return index; }
  __device__ __forceinline__ const X* row(int index) const { return data + static_cast<std::int64_t>(index) * stride; }
};

// Those with the numbers `numbers`[0] to [count - 1]; without numbers the first ones.
template <typename X>
struct ChosenRows {
  const X* data;
  const std::int32_t* numbers;
  int count;
  int stride;

  // Past the last: any row.
  __device__ __forceinline__ int number(int index) const {
    const int known = index < count ? index : 0;
    return numbers == nullptr ? known : load(numbers + known);
  }
  __device__ __forceinline__ const X* row(int index) const {
    return data + static_cast<std::int64_t>(number(index)) * stride;
  }
};

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
