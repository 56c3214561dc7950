// Moves K and V into the paged cache, out of it, and whole blocks about: one workgroup per token, or per pair of
// blocks. Stored is the format of the cache: Half, Bf16, Fp8E4M3 or Fp8E5M2.
#pragma once

#include "kernels/gpu/args.hpp"
#include "kernels/gpu/kv_cache/paged_kv.hpp"
#include "kernels/gpu/layers/rows.hpp"
#include "lower/dculab_gpu/geometry.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// Opt-KV's write filter. Source: LLM-CoOpt, arXiv:2602.09323.
__device__ __forceinline__ bool is_written(const ReshapeAndCache& args, std::int64_t slot) {
  if (slot < 0) return false;
  return args.skip_set == nullptr || (load(args.skip_set + slot / 32) >> (slot % 32) & 1U) == 0;
}

// Of eight numbers; FP8 keeps the quotient by its scale, divided in f32.
template <typename Stored>
__device__ __forceinline__ void store_cached(void* cache, std::int64_t index, Numbers<kWide> numbers, float scale) {
  if constexpr (kIsScaled<Stored>) {
    DCULAB_UNROLL
    for (int i = 0; i < kWide; ++i) numbers[i] /= scale;
  }
  store_packed<kWide, Stored>(cache, index, numbers);
}

template <typename Stored>
__device__ __forceinline__ Numbers<kWide> load_cached(const void* cache, std::int64_t index, float scale) {
  auto numbers = load_packed<kWide, Stored>(cache, index);
  if constexpr (kIsScaled<Stored>) {
    DCULAB_UNROLL
    for (int i = 0; i < kWide; ++i) numbers[i] *= scale;
  }
  return numbers;
}

template <typename Stored>
__global__ void __launch_bounds__(kKvCacheThreads) reshape_and_cache_kernel(ReshapeAndCache args) {
  const KvCacheView& cache = args.cache;
  const std::int64_t slot = load(args.slot_mapping + workgroup_x());
  if (!is_written(args, slot)) return;
  const std::int64_t block = slot / cache.block_size, row = workgroup_x() * args.kv_stride;
  const int offset = static_cast<int>(slot % cache.block_size);
  const int width = cache.num_kv_heads * cache.head_dim, values = cache.v == cache.k ? width : 2 * width;
  for (int i = thread_index() * kWide; i < values; i += threads_per_workgroup() * kWide) {
    const bool is_k = i < width;
    const int value = is_k ? i : i - width;
    const std::int64_t place = cache_row(cache, block, value / cache.head_dim, offset) + value % cache.head_dim;
    const Input& source = is_k ? args.k : args.v;
    store_cached<Stored>(is_k ? cache.k : cache.v, place, load_numbers<kWide>(source.data, source.dtype, row + value),
                         is_k ? cache.k_scale : cache.v_scale);
  }
}

// The sequence that a token of the gathered rows belongs to: the last one that starts at it or before it and is not
// empty. start_loc: [num_seqs + 1]
__device__ __forceinline__ int sequence_of(const std::int32_t* start_loc, int num_seqs, int token) {
  int first = 0, last = num_seqs;  // start_loc[first] <= token < start_loc[last]
  while (last - first > 1) {
    const int middle = (first + last) / 2;
    if (load(start_loc + middle) <= token)
      first = middle;
    else
      last = middle;
  }
  return first;
}

template <typename Stored>
__global__ void __launch_bounds__(kKvCacheThreads) gather_cached_kv_kernel(GatherCachedKv args) {
  const KvCacheView& cache = args.cache;
  const int seq = sequence_of(args.context_start_loc, args.num_seqs, workgroup_x());
  const int token = workgroup_x() - load(args.context_start_loc + seq);
  const std::int32_t* block_table = args.block_tables + static_cast<std::int64_t>(seq) * args.max_blocks_per_seq;
  const std::int64_t first_head = cache_row_of_token(cache, block_table, 0, token);
  const std::int64_t head_stride = static_cast<std::int64_t>(cache.block_size) * cache.head_dim;
  const int width = cache.num_kv_heads * cache.head_dim;
  const std::int64_t row = static_cast<std::int64_t>(workgroup_x()) * width;
  for (int i = thread_index() * kWide; i < 2 * width; i += threads_per_workgroup() * kWide) {
    const bool is_k = i < width;
    const int value = is_k ? i : i - width;
    const std::int64_t place = first_head + value / cache.head_dim * head_stride + value % cache.head_dim;
    const Output& out = is_k ? args.k : args.v;
    store_numbers(out.data, out.dtype, row + value,
                  load_cached<Stored>(is_k ? cache.k : cache.v, place, is_k ? cache.k_scale : cache.v_scale));
  }
}

using BlockBytes = Pack<std::uint32_t, 4>;  // what a lane copies

// Grid: pairs, then the parts of a block.
template <typename Bytes>
__global__ void __launch_bounds__(kKvCacheThreads) copy_blocks_kernel(CopyBlocks args) {
  const std::int64_t packs = args.block_bytes / static_cast<std::int64_t>(sizeof(Bytes));
  const std::int64_t i = static_cast<std::int64_t>(workgroup_y()) * kKvCacheThreads + thread_index();
  if (i >= packs) return;
  const std::int32_t* pair = args.pairs + 2 * static_cast<std::int64_t>(workgroup_x());
  const std::int64_t source = load(pair), destination = load(pair + 1);
  const Bytes bytes = load(static_cast<const Bytes*>(args.source) + source * packs + i);
  store(static_cast<Bytes*>(args.destination) + destination * packs + i, bytes);
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
