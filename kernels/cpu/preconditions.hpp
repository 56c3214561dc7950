// What the CPU kernels refuse instead of computing something else: std::invalid_argument says what and in which kernel.
#pragma once

#include <stdexcept>
#include <string>

#include "kernels/ops.hpp"

namespace dculab::kernels::cpu {

// Allocates nothing while it holds: kernels run inside a step, which may not allocate.
inline void require(bool holds, const char* kernel, const char* what) {
  if (!holds) throw std::invalid_argument(std::string("cpu ") + kernel + ": " + what);
}

inline void require_plain_floats(Dtype dtype, const char* kernel, const char* tensor) {
  if (dtype == Dtype::f32 || dtype == Dtype::f16 || dtype == Dtype::bf16) return;
  throw std::invalid_argument(std::string("cpu ") + kernel + ": " + tensor + " in " + std::string(name(dtype)) +
                              " (f32, f16 and bf16 are supported)");
}

}  // namespace dculab::kernels::cpu
