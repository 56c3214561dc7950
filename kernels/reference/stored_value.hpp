// Reads and writes one value of a tensor in its stored format.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.hpp"

namespace dculab::kernels::reference {

// Precondition: dtype is f32, f16, bf16, fp8_e4m3 or fp8_e5m2.
[[nodiscard]] double load_value(const void* data, Dtype dtype, std::size_t index);

// Rounds to F32 and from there to nearest even; FP8 saturates (see number_format.hpp).
void store_value(void* data, Dtype dtype, std::size_t index, double value);

}  // namespace dculab::kernels::reference
