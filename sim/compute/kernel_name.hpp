// Which of our GPU kernels runs an op, by the name that the compiler gives it. Follows the launchers
// (kernels/gpu/launch), which choose a kernel by shapes and formats.
#pragma once

#include <string>

#include "core/op.hpp"

namespace dculab::sim {

// Rows of x up to which a product is a matrix-vector product (kernels/gpu/tiling.hpp).
inline constexpr int kGemvMaxRows = 8;

// Empty where no kernel of ours runs the op. rope_and_cache is two kernels, but with ALiBi;
// the first stands for both.
[[nodiscard]] std::string kernel_name(const Op& op, int wave_size);

}  // namespace dculab::sim
