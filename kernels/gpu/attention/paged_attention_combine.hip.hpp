// The second pass of partitioned decode attention: merges the partitions of a query head by log-sum-exp.
#pragma once

#include "kernels/gpu/attention/paged_attention_heads.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

inline constexpr int kCombineThreads = 256;
inline constexpr int kCombineValues = 4;  // that a lane takes at a time: 16 bytes

struct CombineShared {
  WavePartials partials;
  Numbers<kCombineValues> sums[kCombineThreads];
};

// One workgroup per query head and sequence; each row of head_dim / kCombineValues lanes takes every n-th partition.
template <int kWave>
__global__ void __launch_bounds__(kCombineThreads) paged_attention_combine_kernel(PagedAttentionLaunch launch) {
  DCULAB_SHARED(CombineShared, shared);
  const PagedAttention& args = launch.args;
  const int head_dim = args.cache.head_dim, thread = thread_index();
  const std::int64_t row = static_cast<std::int64_t>(workgroup_y()) * args.num_heads + workgroup_x();
  const std::int64_t first = row * launch.partitions;
  const std::int64_t parts = static_cast<std::int64_t>(args.num_seqs) * args.num_heads * launch.partitions;
  const float* maxima = args.workspace + parts * head_dim + first;
  const float* weights = maxima + parts;
  // Partitions [begin, end) have tokens to attend to; the others were not written.
  const int context = load(args.context_lens + workgroup_y());
  const int past_window = args.sliding_window > 0 && context > args.sliding_window ? context - args.sliding_window : 0;
  const int begin = past_window / args.partition_tokens;
  const int end = (context + args.partition_tokens - 1) / args.partition_tokens;

  float largest = kNoScore, total = 0;
  for (int i = begin + thread; i < end; i += kCombineThreads) largest = larger(load(maxima + i), largest);
  largest = workgroup_max<kWave, kCombineThreads>(largest, shared.partials);
  for (int i = begin + thread; i < end; i += kCombineThreads)
    total += load(weights + i) * fast_exp(load(maxima + i) - largest);
  total = workgroup_sum<kWave, kCombineThreads>(total, shared.partials);

  const int lanes = head_dim / kCombineValues, rows = kCombineThreads / lanes, value = thread % lanes * kCombineValues;
  Numbers<kCombineValues> sums{};
  if (thread < rows * lanes) {
    for (int i = begin + thread / lanes; i < end; i += rows) {
      const float factor = fast_exp(load(maxima + i) - largest);
      const auto part = load_packed<kCombineValues, float>(args.workspace, (first + i) * head_dim + value);
      DCULAB_UNROLL
      for (int j = 0; j < kCombineValues; ++j) sums[j] += part[j] * factor;
    }
  }
  shared.sums[thread] = sums;
  barrier();
  if (thread >= lanes) return;
  for (int other = thread + lanes; other < rows * lanes; other += lanes) {
    DCULAB_UNROLL
    for (int j = 0; j < kCombineValues; ++j) sums[j] += shared.sums[other][j];
  }
  const float factor = total == 0 ? 0.0F : launch.output_scale / total;
  DCULAB_UNROLL
  for (int j = 0; j < kCombineValues; ++j) sums[j] *= factor;
  store_numbers(args.out.data, args.out.dtype, row * head_dim + value, sums);
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
