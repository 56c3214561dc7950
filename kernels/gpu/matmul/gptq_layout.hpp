// How act-order GPTQ weights are laid out for the GPU kernels: once, on the host, when a checkpoint is loaded.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/quantized_ops.hpp"

namespace dculab::kernels::gpu {

// The rows of a matrix in the order of their groups: row i of `qweight` belongs to in-feature x_perm[i] and to group
// i / group_size. Both are empty where the rows are in that order already, so that GptqWeightView::qweight will do.
struct GptqLayout {
  std::vector<std::uint32_t> qweight;  // [in_features / 8, out_features]
  std::vector<std::int32_t> x_perm;    // [in_features]
};

// All pointers are to host memory; weight.g_idx may be null. Throws InputError unless every group has group_size rows.
[[nodiscard]] GptqLayout sort_by_group(const GptqWeightView& weight);

}  // namespace dculab::kernels::gpu
