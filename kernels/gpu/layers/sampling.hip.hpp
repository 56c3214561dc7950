// From logits to the choice of a token: softmax, argmax, top-k. One workgroup per row: 128,256 logits of f32 are 8,000
// clocks of the 64 bytes per clock that a compute unit of GCN gets from L2.
#pragma once

#include "kernels/gpu/args.hpp"
#include "kernels/gpu/layers/rank.hpp"
#include "kernels/gpu/layers/rows.hpp"
#include "kernels/gpu/wave.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

inline constexpr int kSamplingThreads = 1024;

// Sum over the numbers seen so far of e^((x - largest) * scale).
struct RunningSoftmax {
  float largest = -3.402823466e+38F;  // finite: the difference from -infinity is then -infinity, not NaN
  float sum = 0;
};

// Of one lane: the sum is scaled anew whenever a larger number appears. Source: Milakov and Gimelshein,
// arXiv:1805.02867.
__device__ __forceinline__ RunningSoftmax sum_exponentials(const Softmax& args, std::int64_t row, int wide,
                                                           float scale) {
  RunningSoftmax running;
  for_each_number<kSamplingThreads>(wide, args.width, [&](auto count, int i) {
    constexpr int kCount = decltype(count)::value;
    const auto x = load_numbers<kCount>(args.x.data, args.x.dtype, row + i);
    float largest = running.largest;
    DCULAB_UNROLL
    for (int j = 0; j < kCount; ++j) largest = larger(largest, x[j]);
    running.sum *= fast_exp((running.largest - largest) * scale);
    DCULAB_UNROLL
    for (int j = 0; j < kCount; ++j) running.sum += fast_exp((x[j] - largest) * scale);
    running.largest = largest;
  });
  return running;
}

template <int kWave>
__global__ void __launch_bounds__(kSamplingThreads) softmax_kernel(Softmax args) {
  DCULAB_SHARED(WavePartials, partials);
  const std::int64_t row = static_cast<std::int64_t>(workgroup_x()) * args.width;
  const int wide = wide_part(args.width, args.width, args.x.data, args.out.data);
  const float scale = 1.0F / args.temperature;
  const RunningSoftmax lane = sum_exponentials(args, row, wide, scale);
  const float largest = workgroup_max<kWave, kSamplingThreads>(lane.largest, partials);
  const float part = lane.sum * fast_exp((lane.largest - largest) * scale);
  const float factor = 1.0F / workgroup_sum<kWave, kSamplingThreads>(part, partials);
  for_each_number<kSamplingThreads>(wide, args.width, [&](auto count, int i) {
    constexpr int kCount = decltype(count)::value;
    auto values = load_numbers<kCount>(args.x.data, args.x.dtype, row + i);
    DCULAB_UNROLL
    for (int j = 0; j < kCount; ++j) values[j] = fast_exp((values[j] - largest) * scale) * factor;
    store_numbers<kCount>(args.out.data, args.out.dtype, row + i, values);
  });
}

template <int kWave>
struct WaveRanks {
  Rank values[kSamplingThreads / kWave];
};

template <int kWave>
__global__ void __launch_bounds__(kSamplingThreads) argmax_kernel(Argmax args) {
  DCULAB_SHARED(WaveRanks<kWave>, highest_of_wave);
  const std::int64_t row = static_cast<std::int64_t>(workgroup_x()) * args.width;
  const int wide = wide_part(args.width, args.width, args.x.data);
  Rank highest = 0;
  for_each_number<kSamplingThreads>(wide, args.width, [&](auto count, int i) {
    constexpr int kCount = decltype(count)::value;
    const auto x = load_numbers<kCount>(args.x.data, args.x.dtype, row + i);
    DCULAB_UNROLL
    for (int j = 0; j < kCount; ++j) highest = higher(highest, rank_of(x[j], i + j));
  });
  highest = wave_highest<kWave>(highest);
  if (lane_index<kWave>() == 0) highest_of_wave.values[wave_index<kWave>()] = highest;
  barrier();
  if (thread_index() != 0) return;
  for (int i = 1; i < kSamplingThreads / kWave; ++i) highest = higher(highest, highest_of_wave.values[i]);
  store(args.out + workgroup_x(), static_cast<std::int32_t>(index_of(highest)));
}

inline constexpr int kMaxTopK = 64;
inline constexpr int kCandidates = 2 * kSamplingThreads;

// The best of what was read of a row so far are among these.
struct Candidates {
  Rank ranks[kCandidates];
  std::uint32_t count;  // lanes that find no place count too: may pass kCandidates
};

// Sorts the first `count` candidates, highest first: a bitonic network over the next power of two (Batcher, 1968).
__device__ __forceinline__ void sort_candidates(Candidates& candidates, int count) {
  int size = kMaxTopK;
  while (size < count) size *= 2;
  for (int i = count + thread_index(); i < size; i += kSamplingThreads) candidates.ranks[i] = 0;
  barrier();
  for (int run = 2; run <= size; run *= 2) {
    for (int step = run / 2; step > 0; step /= 2) {
      const int pair = thread_index();
      if (pair < size / 2) {
        const int first = pair / step * 2 * step + pair % step;
        const Rank a = candidates.ranks[first], b = candidates.ranks[first + step];
        const bool ascends = (first & run) != 0;
        candidates.ranks[first] = (a < b) != ascends ? b : a;
        candidates.ranks[first + step] = (a < b) != ascends ? a : b;
      }
      barrier();
    }
  }
}

// Keeps the k best and returns the rank of the k-th: what is not above it need not be looked at. All lanes take part.
__device__ __forceinline__ Rank keep_best(Candidates& candidates, int k) {
  const int count = smaller(static_cast<int>(candidates.count), kCandidates);
  sort_candidates(candidates, count);
  if (thread_index() == 0) candidates.count = static_cast<std::uint32_t>(smaller(count, k));
  const Rank last = candidates.ranks[k - 1];
  barrier();
  return last;
}

// Adds those of a lane's ranks that are above `least`, which rises when the candidates had to be sorted for room.
template <int kCount>
__device__ __forceinline__ Rank add_candidates(Candidates& candidates, Rank (&ranks)[kCount], Rank least, int k) {
  for (;;) {
    DCULAB_UNROLL
    for (int j = 0; j < kCount; ++j) {
      if (ranks[j] <= least) continue;
      const std::uint32_t place = add_shared(candidates.count, 1);
      if (place >= kCandidates) break;
      candidates.ranks[place] = ranks[j];
      ranks[j] = 0;
    }
    barrier();
    const bool full = candidates.count > kCandidates;
    barrier();
    if (!full) return least;
    least = keep_best(candidates, k);
  }
}

// Goes over the part [begin, end) of a row with all lanes, kCount numbers each.
template <int kCount>
__device__ __forceinline__ Rank find_candidates(const TopK& args, Candidates& candidates, int begin, int end,
                                                Rank least) {
  const std::int64_t row = static_cast<std::int64_t>(workgroup_x()) * args.width;
  for (int step = begin; step < end; step += kSamplingThreads * kCount) {
    const int i = step + thread_index() * kCount;
    Rank ranks[kCount] = {};
    if (i < end) {
      const auto x = load_numbers<kCount>(args.x.data, args.x.dtype, row + i);
      DCULAB_UNROLL
      for (int j = 0; j < kCount; ++j) ranks[j] = rank_of(x[j], i + j);
    }
    least = add_candidates(candidates, ranks, least, args.k);
  }
  return least;
}

// One pass over the row. Numbers in random order need two or three sorts; ascending ones, the worst case, a sort for
// each 2048 - k numbers.
template <int kWave>
__global__ void __launch_bounds__(kSamplingThreads) top_k_kernel(TopK args) {
  DCULAB_SHARED(Candidates, candidates);
  if (thread_index() == 0) candidates.count = 0;
  barrier();
  const int wide = wide_part(args.width, args.width, args.x.data);
  Rank least = find_candidates<kWide>(args, candidates, 0, wide, 0);
  least = find_candidates<1>(args, candidates, wide, args.width, least);
  (void)keep_best(candidates, args.k);
  const int i = thread_index();
  if (i >= args.k) return;
  const int index = index_of(candidates.ranks[i]);
  const std::int64_t row = workgroup_x();
  store(args.indices + row * args.k + i, static_cast<std::int32_t>(index));
  store(args.values + row * args.k + i, load_number(args.x.data, args.x.dtype, row * args.width + index));
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
