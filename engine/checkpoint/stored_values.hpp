// Between the stored formats F32, F16 and BF16, and floats to compute with.
#pragma once

#include <cstddef>
#include <span>

#include "core/dtype.hpp"

namespace dculab::engine {

// Exact. `stored` holds out.size() values of `dtype`.
void widen(const void* stored, Dtype dtype, std::span<float> out);

// Rounds to nearest, ties to even. `stored` has room for values.size() values of `dtype`.
void narrow(std::span<const float> values, Dtype dtype, void* stored);

}  // namespace dculab::engine
