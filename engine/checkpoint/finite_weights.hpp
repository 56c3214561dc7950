// Whether the weights of a checkpoint are numbers. A damaged one would run, and print text.
#pragma once

#include <cstddef>
#include <span>

#include "core/dtype.hpp"

namespace dculab::engine {

// Whether none of the stored values is NaN or infinite. `stored` need not be aligned; `dtype` is F32, F16 or BF16.
[[nodiscard]] bool all_finite(std::span<const std::byte> stored, Dtype dtype);

}  // namespace dculab::engine
