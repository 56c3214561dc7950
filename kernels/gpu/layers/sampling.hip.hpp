// From logits to the likeliest tokens. One workgroup per row: 128,256 logits of f32 are 8,000 clocks of the 64 bytes
// per clock that a compute unit of GCN gets from L2.
#pragma once

#include "kernels/gpu/args.hpp"
#include "kernels/gpu/layers/rank.hpp"
#include "kernels/gpu/layers/rows.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

inline constexpr int kSamplingThreads = 1024;
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
