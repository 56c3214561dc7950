// Products of the experts with GPTQ int4 weights: the inner loops of gptq_gemv.hip.hpp and gptq_gemm.hip.hpp, a tile of
// one expert's rows in each workgroup, and all of k.
#pragma once

#include "kernels/gpu/experts/expert_tile.hpp"
#include "kernels/gpu/matmul/gptq_gemm.hip.hpp"
#include "kernels/gpu/matmul/gptq_gemv.hip.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// The ordinary product of a tile's rows with its expert's weights.
__device__ __forceinline__ GptqMatmul of_expert(const ExpertGptqMatmul& args, const TileOfRows& tile) {
  const std::int64_t expert = tile.expert, k = args.weight.in_features, n = args.weight.out_features;
  const std::int64_t groups = k / args.weight.group_size, y_bytes = args.y.dtype == Dtype::f32 ? 4 : 2;
  GptqMatmul one;
  one.weight = args.weight;
  one.weight.qweight += expert * (k / 8) * n;
  one.weight.qzeros += expert * groups * (n / 8);
  one.weight.scales += expert * groups * n;
  if (args.x_perm != nullptr) one.x_perm = args.x_perm + expert * k;
  if (args.bias != nullptr) one.bias = args.bias + expert * n;
  one.y = {static_cast<char*>(args.y.data) + tile.first_row * n * y_bytes, args.y.dtype};
  one.y_stride = args.weight.out_features;
  one.m = tile.count;
  return one;
}

// Workgroups: (ceil(n / kGptqGemvColumns), tiles).
template <int kWave, int kRows, typename T>
__global__ void __launch_bounds__(kGptqThreads, 2)
    expert_gptq_gemv_kernel(ExpertGptqMatmul args, GptqDivision division) {
  using Shared = GptqGemvShared<T, kRows>;
  DCULAB_SHARED(Shared, shared);
  const TileOfRows tile = find_tile(args.rows, workgroup_y(), kRows);
  if (tile.count == 0) return;
  const ChosenRows<T> x = x_rows<T>(args.x, args.rows, tile, args.weight.in_features);
  multiply_few_rows<kWave, kRows, T>(of_expert(args, tile), division, 0, x, shared);
}

// Workgroups: (ceil(n / kGptqGemmColumns), tiles).
template <int kWave, int kTileRows, typename T>
__global__ void __launch_bounds__(kGptqThreads, 2)
    expert_gptq_gemm_kernel(ExpertGptqMatmul args, GptqDivision division) {
  using Shared = GptqGemmShared<T, kTileRows>;
  DCULAB_SHARED(Shared, shared);
  const TileOfRows tile = find_tile(args.rows, workgroup_y(), kTileRows);
  if (tile.count == 0) return;
  const ChosenRows<T> x = x_rows<T>(args.x, args.rows, tile, args.weight.in_features);
  multiply_tile<kTileRows, T>(of_expert(args, tile), division, 0, 0, x, shared);
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
