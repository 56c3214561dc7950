// Sizes of matmul tiles that plans, kernel names and the kernels themselves agree on.
#pragma once

namespace dculab {

// KernelTiling::matmul_rows of the CPU kernels: each weight is asked for once, whatever the rows.
inline constexpr int kAllMatmulRows = 1 << 20;

// Rows of y that a workgroup of a product with int4 weights computes at most
// (kernels/gpu/matmul/gptq_plan.hpp).
inline constexpr int kGptqTileRows = 64;

}  // namespace dculab
