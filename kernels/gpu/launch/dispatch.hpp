// From numbers and formats that are known at run time to the kernel that was compiled for them.
#pragma once

#include <stdexcept>
#include <string>

#include "kernels/gpu/numbers.hpp"

namespace dculab::kernels::gpu {

// Calls function.operator()<kCount>() for the one of kCounts that is `count`.
template <int... kCounts, typename Function>
void with_count(int count, Function function) {
  const bool found = ((count == kCounts && (function.template operator()<kCounts>(), true)) || ...);
  if (!found) throw std::logic_error("no kernel is compiled for " + std::to_string(count));
}

namespace DCULAB_GPU_BUILD {

// Calls function.operator()<X, W>() for the formats of activations and of weights.
template <typename Function>
void with_formats(Dtype x, Dtype w, Function function) {
  const auto with_x = [&]<typename X>() {
    if (w == Dtype::f16) return function.template operator()<X, Half>();
    if (w == Dtype::bf16) return function.template operator()<X, Bf16>();
    if (w == Dtype::fp8_e4m3) return function.template operator()<X, Fp8E4M3>();
    function.template operator()<X, float>();
  };
  if (x == Dtype::f16) return with_x.template operator()<Half>();
  with_x.template operator()<float>();
}

}  // namespace DCULAB_GPU_BUILD

}  // namespace dculab::kernels::gpu
