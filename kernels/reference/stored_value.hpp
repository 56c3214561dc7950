// Reads and writes one value of a tensor in its stored format.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.hpp"

namespace dculab::kernels::reference {

// Precondition: dtype is f32, f16 or bf16.
[[nodiscard]] double load_value(const void* data, Dtype dtype, std::size_t index);
void store_value(void* data, Dtype dtype, std::size_t index, double value);

}  // namespace dculab::kernels::reference
