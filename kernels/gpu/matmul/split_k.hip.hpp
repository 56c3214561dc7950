// The second pass of a matmul whose sum over k was divided among workgroups: adds the parts, always in the same order,
// and the bias.
#pragma once

#include "kernels/gpu/args.hpp"
#include "kernels/gpu/matmul/bias.hpp"
#include "lower/dculab_gpu/split_k.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

inline constexpr int kSplitKThreads = 256;
inline constexpr int kSplitKColumns = 4 * kSplitKThreads;  // of one workgroup: four neighbours per lane

// Workgroups: (ceil(n / kSplitKColumns), m).
template <int kWave>
__global__ void __launch_bounds__(kSplitKThreads) split_k_sum_kernel(SplitKSum args) {
  const int column = workgroup_x() * kSplitKColumns + 4 * thread_index();
  const int row = workgroup_y();
  if (column >= args.n) return;
  const bool aligned = args.n % 4 == 0;
  float sum[4] = {};
  for (int part = 0; part < args.parts; ++part) {
    const float* partials = args.partials + (static_cast<std::int64_t>(part) * args.m + row) * args.n + column;
    Pack<float, 4> addend{};
    if (aligned) addend = load(reinterpret_cast<const Pack<float, 4>*>(partials));
    DCULAB_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (!aligned && column + i < args.n) addend[i] = load(partials + i);
      sum[i] += addend[i];
    }
  }
  const std::int64_t out = static_cast<std::int64_t>(row) * args.y_stride + column;
  DCULAB_UNROLL
  for (int i = 0; i < 4; ++i)
    if (column + i < args.n) store_number(args.y.data, args.y.dtype, out + i, sum[i] + bias_of(args.bias, column + i));
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
