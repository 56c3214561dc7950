// Refuses formats and shapes that no kernel is compiled for, naming those that there are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "core/dtype.hpp"
#include "core/error.hpp"
#include "kernels/gpu/args.hpp"

namespace dculab::kernels::gpu {

inline void require_dtype(const std::string& what, Dtype dtype, std::initializer_list<Dtype> supported) {
  if (std::find(supported.begin(), supported.end(), dtype) != supported.end()) return;
  std::string known;
  for (const Dtype each : supported) known += (known.empty() ? "" : ", ") + std::string(name(each));
  throw InputError(what + " in " + std::string(name(dtype)) + " has no GPU kernel; there is one for " + known);
}

inline void require_activation(const std::string& what, Dtype dtype) {
  require_dtype(what, dtype, {Dtype::f32, Dtype::f16});
}

inline void require_weight(const std::string& what, Dtype dtype) {
  require_dtype(what, dtype, {Dtype::f32, Dtype::f16, Dtype::bf16});
}

// Of a matrix; FP8 with scales of 8 columns at least.
inline void require_matrix(const std::string& what, Dtype dtype, const WeightScales& scales) {
  require_dtype(what, dtype, {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3});
  if (dtype == Dtype::fp8_e4m3 && (scales.values == nullptr || scales.column_shift < 3))
    throw InputError(what + " in FP8 have no GPU kernel without scales of 8 columns at least");
}

inline void require_multiple(const std::string& operation, const std::string& of, int count, int factor) {
  if (count % factor == 0) return;
  throw InputError(operation + " of " + std::to_string(count) + " " + of +
                   " has no GPU kernel; their number must be a multiple of " + std::to_string(factor));
}

// Kernels load and store 16 bytes at a time; null, for a tensor that is not given, passes.
inline void require_aligned(const std::string& what, const void* data) {
  const auto beyond = reinterpret_cast<std::uintptr_t>(data) % 16;
  if (beyond == 0) return;
  throw InputError(what + " starts " + std::to_string(beyond) +
                   " bytes beyond a multiple of 16, and GPU kernels load 16 bytes at a time; align it to 16 bytes");
}

// n values of each row of the result are written, `stride` apart.
inline void require_fitting_rows(const std::string& operation, int n, int stride) {
  if (n <= stride) return;
  throw InputError(operation + " of " + std::to_string(n) + " out-features does not fit result rows of " +
                   std::to_string(stride));
}

}  // namespace dculab::kernels::gpu
