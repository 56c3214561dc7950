// The weighted sum of what a token's experts gave.
#pragma once

#include "kernels/gpu/expert_args.hpp"
#include "kernels/gpu/layers/rows.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

inline constexpr int kCombineThreads = kCombinePiece / kWide;

// Workgroup (token, piece of the row).
template <int kWave>
__global__ void __launch_bounds__(kCombineThreads) combine_experts_kernel(CombineExperts args) {
  const std::int64_t token = workgroup_x(), begin = workgroup_y() * kCombinePiece;
  const int count = smaller(args.width - static_cast<int>(begin), kCombinePiece);
  const int wide = wide_part(count, args.width, args.y.data, args.shared.data, args.out.data);
  const std::int64_t first_choice = token * args.experts_per_token;
  float factor = 1.0F;
  if (args.shared_gate.data != nullptr)
    factor = 1.0F / (1.0F + fast_exp(-load_number(args.shared_gate.data, args.shared_gate.dtype, token)));
  for_each_number<kCombineThreads>(wide, count, [&](auto numbers, int i) {
    constexpr int kCount = decltype(numbers)::value;
    Numbers<kCount> sums{};
    for (int choice = 0; choice < args.experts_per_token; ++choice) {
      const std::int64_t row = load(args.choice_rows + first_choice + choice);
      const float weight = load(args.weights + first_choice + choice);
      const auto y = load_numbers<kCount>(args.y.data, args.y.dtype, row * args.width + begin + i);
      DCULAB_UNROLL
      for (int j = 0; j < kCount; ++j) sums[j] = fused_multiply_add(weight, y[j], sums[j]);
    }
    if (args.shared.data != nullptr) {
      const auto shared = load_numbers<kCount>(args.shared.data, args.shared.dtype, token * args.width + begin + i);
      DCULAB_UNROLL
      for (int j = 0; j < kCount; ++j) sums[j] = fused_multiply_add(factor, shared[j], sums[j]);
    }
    store_numbers<kCount>(args.out.data, args.out.dtype, token * args.width + begin + i, sums);
  });
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
