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

// Partitions [begin, end) of a query head have tokens to attend to; the others were not written.
struct WrittenPartitions {
  std::int64_t first;             // of the head, among all partitions
  const float *maxima, *weights;  // [partitions] of the head
  int begin, end;
};

// Of new token workgroup_z() of sequence workgroup_y(); `row` is set to that of its query head workgroup_x(), or to -1
// where there is no such token.
__device__ __forceinline__ WrittenPartitions find_partitions(const PagedAttentionLaunch& launch, std::int64_t& row) {
  const PagedAttention& args = launch.args;
  const std::int64_t parts = static_cast<std::int64_t>(args.queries.num_tokens) * args.num_heads * launch.partitions;
  const int context = load(args.context_lens + workgroup_y());
  int token = workgroup_y(), first_position = context - 1;
  bool exists = true;
  if (args.queries.start_loc != nullptr) {
    const NewTokens tokens = new_tokens_of(args.queries, workgroup_y(), context);
    token = tokens.first + workgroup_z();
    first_position = tokens.first_position();
    exists = workgroup_z() < tokens.count;
  }
  row = exists ? static_cast<std::int64_t>(token) * args.num_heads + workgroup_x() : -1;
  const int window_begin = first_position + 1 - args.sliding_window;
  const int past_window = args.sliding_window > 0 && window_begin > 0 ? window_begin : 0;
  WrittenPartitions written;
  written.first = row * launch.partitions;
  written.maxima = args.workspace + parts * args.cache.head_dim + written.first;
  written.weights = written.maxima + parts;
  written.begin = past_window / args.partition_tokens;
  written.end = (context + args.partition_tokens - 1) / args.partition_tokens;
  return written;
}

// The sum of every `step`-th numerator from partition `begin` on, relative to `largest`: of kCombineValues values.
__device__ __forceinline__ Numbers<kCombineValues> sum_numerators(const PagedAttention& args,
                                                                  const WrittenPartitions& written, int begin, int step,
                                                                  int value, float largest) {
  Numbers<kCombineValues> sums{};
  for (int i = begin; i < written.end; i += step) {
    const float factor = fast_exp(load(written.maxima + i) - largest);
    const std::int64_t place = (written.first + i) * args.cache.head_dim + value;
    const auto part = load_packed<kCombineValues, float>(args.workspace, place);
    DCULAB_UNROLL
    for (int j = 0; j < kCombineValues; ++j) sums[j] += part[j] * factor;
  }
  return sums;
}

// One workgroup per query head, sequence and new token of it; each row of head_dim / kCombineValues lanes takes every
// n-th partition.
template <int kWave>
__global__ void __launch_bounds__(kCombineThreads) paged_attention_combine_kernel(PagedAttentionLaunch launch) {
  DCULAB_SHARED(CombineShared, shared);
  const PagedAttention& args = launch.args;
  const int head_dim = args.cache.head_dim, thread = thread_index();
  std::int64_t row;
  const WrittenPartitions written = find_partitions(launch, row);
  if (row < 0) return;

  float largest = kNoScore, total = 0;
  for (int i = written.begin + thread; i < written.end; i += kCombineThreads)
    largest = larger(load(written.maxima + i), largest);
  largest = workgroup_max<kWave, kCombineThreads>(largest, shared.partials);
  for (int i = written.begin + thread; i < written.end; i += kCombineThreads)
    total += load(written.weights + i) * fast_exp(load(written.maxima + i) - largest);
  total = workgroup_sum<kWave, kCombineThreads>(total, shared.partials);

  const int lanes = head_dim / kCombineValues, rows = kCombineThreads / lanes, value = thread % lanes * kCombineValues;
  const int begin = thread < rows * lanes ? written.begin + thread / lanes : written.end;
  Numbers<kCombineValues> sums = sum_numerators(args, written, begin, rows, value, largest);
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
