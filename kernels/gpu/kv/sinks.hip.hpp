// Attention sinks: keys that are kept unrotated, and rotated anew to where they stand. A workgroup for each token.
#pragma once

#include "kernels/gpu/kv/int8.hip.hpp"
#include "kernels/gpu/kv/sinks.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

template <int kWave>
__global__ void __launch_bounds__(kKvCacheThreads) keep_sink_keys_kernel(KeepSinkKeys args) {
  const int sink = workgroup_x();
  const std::int64_t row = load(args.tokens + sink) * args.stride;
  float* const to = load(args.kept + sink) + args.first_kept;
  for (int i = thread_index() * kWide; i < args.width; i += threads_per_workgroup() * kWide)
    store_packed<kWide, float>(to, i, load_numbers<kWide>(args.kv.data, args.kv.dtype, row + i));
}

// Values [value, value + 8) of a key, and those that they are turned with: of halves the ones half a part away, which
// lie side by side where that is a multiple of 8.
struct KeyPairs {
  Numbers<kWide> own, other;
};

__device__ __forceinline__ KeyPairs load_pairs(const ShiftSinkKeys& args, const float* head, int value) {
  const int half = args.rotary_dim / 2;
  KeyPairs pairs;
  pairs.own = load_packed<kWide, float>(head, value);
  pairs.other = pairs.own;
  if (args.neighbours) {
    DCULAB_UNROLL
    for (int i = 0; i < kWide; ++i) pairs.other[i] = pairs.own[i ^ 1];
  } else if (half % kWide == 0 && value + kWide <= args.rotary_dim) {
    pairs.other = load_packed<kWide, float>(head, value < half ? value + half : value - half);
  } else {
    DCULAB_UNROLL
    for (int i = 0; i < kWide; ++i)
      if (value + i < args.rotary_dim)
        pairs.other[i] = load(head + (value + i < half ? value + i + half : value + i - half));
  }
  return pairs;
}

// The same key at `position`.
__device__ __forceinline__ Numbers<kWide> turned(const ShiftSinkKeys& args, const float* head, int value,
                                                 std::int64_t position) {
  const int half = args.rotary_dim / 2;
  const float* const cos_sin = args.cos_sin + position * args.rotary_dim;
  KeyPairs pairs = load_pairs(args, head, value);
  DCULAB_UNROLL
  for (int i = 0; i < kWide; ++i) {
    const int place = value + i;
    if (place >= args.rotary_dim) continue;
    const bool is_first = args.neighbours ? place % 2 == 0 : place < half;
    const int pair = args.neighbours ? place / 2 : place < half ? place : place - half;
    const float sine = load(cos_sin + half + pair), across = pairs.other[i] * (is_first ? -sine : sine);
    pairs.own[i] = pairs.own[i] * load(cos_sin + pair) + across;
  }
  return pairs.own;
}

struct ShiftSinkKeysLaunch {
  ShiftSinkKeys args;
  int lanes = 1;  // int8: of a head, a power of two
};

// Values [i, i + 8) of K, then V, of a kept row.
__device__ __forceinline__ Numbers<kWide> shifted(const ShiftSinkKeys& args, const float* kept, std::int64_t position,
                                                  int i, int value, bool is_k) {
  if (is_k && args.cos_sin != nullptr && value < args.rotary_dim)
    return turned(args, kept + i - value, value, position);
  return load_packed<kWide, float>(kept, i);
}

template <int kWave, typename Stored>
__global__ void __launch_bounds__(kKvCacheThreads) shift_sink_keys_kernel(ShiftSinkKeysLaunch launch) {
  const ShiftSinkKeys& args = launch.args;
  const KvCacheView& cache = args.cache;
  const int sink = workgroup_x(), heads = cache.num_kv_heads, width = heads * cache.head_dim;
  const std::int64_t slot = load(args.slots + sink), position = load(args.positions + sink);
  const float* const kept = load(args.kept + sink) + args.first_kept;
  if constexpr (kHasTokenScales<Stored>) {
    const int groups = threads_per_workgroup() / launch.lanes, value = thread_index() % launch.lanes * kWide;
    for (int first = 0; first < 2 * heads; first += groups) {
      const int head = first + thread_index() / launch.lanes;
      Numbers<kWide> numbers{};
      const bool exists = head < 2 * heads, is_k = head < heads;
      if (exists && value < cache.head_dim)
        numbers = shifted(args, kept, position, head * cache.head_dim + value, value, is_k);
      store_int8_in<kWave>(cache, is_k, exists ? slot : -1, is_k ? head : head - heads, numbers, value, launch.lanes);
    }
  } else {
    const auto scales = cache.extras.as<Fp8KvScales>();
    const std::int64_t block = slot / cache.block_size;
    const int offset = static_cast<int>(slot % cache.block_size);
    for (int i = thread_index() * kWide; i < 2 * width; i += threads_per_workgroup() * kWide) {
      const bool is_k = i < width;
      const int value = (is_k ? i : i - width) % cache.head_dim, head = (is_k ? i : i - width) / cache.head_dim;
      store_cached<Stored>(is_k ? cache.k : cache.v, cache_row(cache, block, head, offset) + value,
                           shifted(args, kept, position, i, value, is_k), is_k ? scales.k : scales.v);
    }
  }
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
