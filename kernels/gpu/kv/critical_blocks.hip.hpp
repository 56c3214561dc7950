// Bounds of the keys of each block, the upper bounds of q · k that follow, and the choice of blocks by them.
#pragma once

#include "kernels/gpu/kv/critical_blocks.hpp"
#include "kernels/gpu/kv_cache/paged_kv.hpp"
#include "kernels/gpu/layers/rows.hpp"
#include "kernels/gpu/wave.hpp"
#include "lower/kv/critical_blocks_geometry.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

static_assert(kBoundsChannels == kWide);

// ---- The bounds of keys ----

struct BlockBoundsLaunch {
  UpdateBlockBounds args;
  int row_lanes = 1;  // of a wave, that share a token's key: a power of two, of which the last may be idle
};

// The minima and maxima of eight channels.
struct KeyBounds {
  Numbers<kWide> least, most;
};

__device__ __forceinline__ void widen(KeyBounds& bounds, const KeyBounds& other) {
  DCULAB_UNROLL
  for (int i = 0; i < kWide; ++i) {
    bounds.least[i] = -larger(-bounds.least[i], -other.least[i]);
    bounds.most[i] = larger(bounds.most[i], other.most[i]);
  }
}

// Over the lanes of the wave that have the same channels.
template <int kWave>
__device__ __forceinline__ void merge_rows(KeyBounds& bounds, int row_lanes) {
  for (int mask = row_lanes; mask < kWave; mask *= 2) {
    KeyBounds other;
    DCULAB_UNROLL
    for (int i = 0; i < kWide; ++i) {
      other.least[i] = shuffle_xor<kWave>(bounds.least[i], mask);
      other.most[i] = shuffle_xor<kWave>(bounds.most[i], mask);
    }
    widen(bounds, other);
  }
}

// New tokens [begin, end) of a block.
struct NewKeys {
  std::int64_t block;
  int begin, end;
};

// Of the workgroup's sequence, in the block that is workgroup_x() behind the one in which the new tokens begin.
__device__ __forceinline__ NewKeys new_keys(const UpdateBlockBounds& args) {
  const int seq = workgroup_y(), block_size = args.cache.block_size, context = load(args.context_lens + seq);
  int tokens = 1;
  if (args.query_start_loc != nullptr) tokens = load(args.query_start_loc + seq + 1) - load(args.query_start_loc + seq);
  const int computed = context - tokens, place = computed / block_size + workgroup_x(), first = place * block_size;
  NewKeys keys{0, computed > first ? computed - first : 0, smaller(context - first, block_size)};
  if (keys.begin < keys.end)
    keys.block = load(args.block_tables + static_cast<std::int64_t>(seq) * args.max_blocks_per_seq + place);
  return keys;
}

// A wave for each KV head. Grid: blocks with new tokens, sequences, KV heads.
template <int kWave, typename Stored>
__global__ void __launch_bounds__(kBoundsThreads) update_block_bounds_kernel(BlockBoundsLaunch launch) {
  const UpdateBlockBounds& args = launch.args;
  const KvCacheView& cache = args.cache;
  const int kv_head = workgroup_z() * (kBoundsThreads / kWave) + wave_index<kWave>();
  const NewKeys keys = new_keys(args);
  if (kv_head >= cache.num_kv_heads || keys.begin >= keys.end) return;
  const int lane = lane_index<kWave>(), row = lane / launch.row_lanes, d = lane % launch.row_lanes * kWide;
  const bool has_channels = d < cache.head_dim;
  KeyBounds bounds;
  DCULAB_UNROLL
  for (int i = 0; i < kWide; ++i) bounds.least[i] = 3.402823466e+38F, bounds.most[i] = -3.402823466e+38F;
  if (has_channels)
    for (int token = keys.begin + row; token < keys.end; token += kWave / launch.row_lanes) {
      auto key = load_packed<kWide, Stored>(cache.k, cache_row(cache, keys.block, kv_head, token) + d);
      if constexpr (kIsScaled<Stored>) {
        DCULAB_UNROLL
        for (int i = 0; i < kWide; ++i) key[i] *= cache.extras.as<Fp8KvScales>().k;
      }
      widen(bounds, {key, key});
    }
  merge_rows<kWave>(bounds, launch.row_lanes);
  if (row != 0 || !has_channels) return;
  auto* const minima =
      reinterpret_cast<Bf16*>(args.bounds) + (keys.block * cache.num_kv_heads + kv_head) * 2 * cache.head_dim + d;
  Bf16* const maxima = minima + cache.head_dim;
  if (keys.begin > 0) widen(bounds, {load_packed<kWide, Bf16>(minima, 0), load_packed<kWide, Bf16>(maxima, 0)});
  Pack<Bf16, kWide> least, most;
  DCULAB_UNROLL
  for (int i = 0; i < kWide; ++i) {
    least[i] = Bf16{bf16_at_most(bounds.least[i])};
    most[i] = Bf16{bf16_at_least(bounds.most[i])};
  }
  store(reinterpret_cast<Pack<Bf16, kWide>*>(minima), least);
  store(reinterpret_cast<Pack<Bf16, kWide>*>(maxima), most);
}

// ---- The upper bounds of blocks ----

struct ChooseLaunch {
  ChooseCriticalBlocks args;
  int row_lanes = 1;
};

__device__ __forceinline__ int num_blocks_of(const ChooseCriticalBlocks& args, int seq) {
  return (load(args.context_lens + seq) + args.cache.block_size - 1) / args.cache.block_size;
}

__device__ __forceinline__ std::int64_t list_of(const ChooseCriticalBlocks& args, int seq, int kv_head) {
  return static_cast<std::int64_t>(seq) * args.cache.num_kv_heads + kv_head;
}

// What a lane multiplies: channels [d, d + 8) of the queries of kHeads heads of the group, from `first_head` on.
template <int kHeads>
struct LaneQueries {
  Numbers<kWide> heads[kHeads];
};

template <int kHeads>
__device__ __forceinline__ LaneQueries<kHeads> load_queries(const ChooseCriticalBlocks& args, int seq, int first_head,
                                                            int end_head, int d) {
  LaneQueries<kHeads> queries{};
  const std::int64_t row = seq * args.q_stride;
  DCULAB_UNROLL
  for (int i = 0; i < kHeads; ++i)
    if (first_head + i < end_head && d < args.cache.head_dim)
      queries.heads[i] = load_numbers<kWide>(args.q.data, args.q.dtype,
                                             row + static_cast<std::int64_t>(first_head + i) * args.cache.head_dim + d);
  return queries;
}

// The largest bound of `count` heads. All lanes that share a row get it.
template <int kWave, int kHeads>
__device__ __forceinline__ float largest_bound(const LaneQueries<kHeads>& queries, int count, const KeyBounds& bounds,
                                               int row_lanes) {
  float largest = -3.402823466e+38F;
  DCULAB_UNROLL
  for (int head = 0; head < kHeads; ++head) {
    float sum = 0;
    DCULAB_UNROLL
    for (int i = 0; i < kWide; ++i) {
      const float q = queries.heads[head][i];
      sum = fused_multiply_add(q, choose(q < 0, bounds.least[i], bounds.most[i]), sum);
    }
    for (int mask = 1; mask < row_lanes; mask *= 2) sum += shuffle_xor<kWave>(sum, mask);
    largest = head < count ? larger(largest, sum) : largest;
  }
  return largest;
}

// Grid: parts of kBoundedBlocks blocks, sequences, KV heads. Groups of more than kHeads heads are taken in turns for
// each block, whose bounds stay in registers meanwhile.
template <int kWave, int kHeads>
__global__ void __launch_bounds__(kBoundsThreads) bound_blocks_kernel(ChooseLaunch launch) {
  const ChooseCriticalBlocks& args = launch.args;
  const int seq = workgroup_y(), kv_head = workgroup_z(), head_dim = args.cache.head_dim;
  const int blocks = num_blocks_of(args, seq), first = workgroup_x() * kBoundedBlocks;
  const int end = smaller(blocks, first + kBoundedBlocks);
  const int group_size = args.num_heads / args.cache.num_kv_heads, first_head = kv_head * group_size;
  const int lane = lane_index<kWave>(), d = lane % launch.row_lanes * kWide;
  const int rows = kWave / launch.row_lanes;
  const std::int32_t* table = args.block_tables + static_cast<std::int64_t>(seq) * args.max_blocks_per_seq;
  float* const upper_bounds = args.upper_bounds + list_of(args, seq, kv_head) * args.max_blocks_per_seq;
  auto queries = load_queries<kHeads>(args, seq, first_head, first_head + group_size, d);
  for (int step = first + wave_index<kWave>() * rows; step < end; step += kBoundsThreads / kWave * rows) {
    const int place = step + lane / launch.row_lanes;
    KeyBounds bounds{};
    if (place < end && d < head_dim) {
      const std::int64_t row = static_cast<std::int64_t>(load(table + place)) * args.cache.num_kv_heads + kv_head;
      bounds.least = load_packed<kWide, Bf16>(args.bounds, row * 2 * head_dim + d);
      bounds.most = load_packed<kWide, Bf16>(args.bounds, (row * 2 + 1) * head_dim + d);
    }
    float largest = -3.402823466e+38F;
    for (int head = 0; head < group_size; head += kHeads) {
      if (group_size > kHeads) queries = load_queries<kHeads>(args, seq, first_head + head, first_head + group_size, d);
      largest = larger(largest, largest_bound<kWave>(queries, group_size - head, bounds, launch.row_lanes));
    }
    if (place < end && lane % launch.row_lanes == 0) store(upper_bounds + place, largest);
  }
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
