// What every product with GPTQ weights needs of them.
#pragma once

#include <bit>

#include "core/error.hpp"
#include "kernels/gpu/launch/supported.hpp"
#include "kernels/gpu/matmul/gptq_weights.hip.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

inline void require_gptq(const Input& x, const GptqWeightView& weight, const std::int32_t* x_perm, const Output& y) {
  require_activation("the input of a GPTQ matmul", x.dtype);
  require_activation("the result of a GPTQ matmul", y.dtype);
  require_aligned("the input of a GPTQ matmul", x.data);
  require_aligned("the qweight of a GPTQ matmul", weight.qweight);
  require_aligned("the scales of a GPTQ matmul", weight.scales);
  require_aligned("the x_perm of a GPTQ matmul", x_perm);
  const int k = weight.in_features, n = weight.out_features, group = weight.group_size;
  if (k <= 0 || n <= 0 || k % kGptqChunk != 0 || n % 8 != 0)
    throw InputError("a GPTQ matrix of " + std::to_string(k) + " in-features and " + std::to_string(n) +
                     " out-features has no GPU kernel; they must be multiples of 32 and of 8");
  const bool known = group == k || ((group == 32 || group == 64 || group == 128) && k % group == 0);
  if (!known)
    throw InputError("a GPTQ matrix of " + std::to_string(k) + " in-features in groups of " + std::to_string(group) +
                     " has no GPU kernel; groups must be of 32, 64 or 128 that divide the in-features, or of all");
}

inline GptqDivision division_of(const GptqWeightView& weight, int k_per_part) {
  const bool one_group = weight.group_size == weight.in_features;
  return {k_per_part, one_group ? 31 : std::countr_zero(static_cast<unsigned>(weight.group_size))};
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
