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

// Eight of the values of the workgroup's token, from value `i` of K, then V, on.
template <typename Stored>
__device__ __forceinline__ void cache_values(const ReshapeAndCache& args, int i, int width, std::int64_t block,
                                             int offset) {
  const KvCacheView& cache = args.cache;
  const bool is_k = i < width;
  const int value = is_k ? i : i - width;
  const std::int64_t row = workgroup_x() * args.kv_stride;
  const std::int64_t place = cache_row(cache, block, value / cache.head_dim, offset) + value % cache.head_dim;
  const Input& source = is_k ? args.k : args.v;
  const auto scales = cache.extras.as<Fp8KvScales>();
  store_cached<Stored>(is_k ? cache.k : cache.v, place, load_numbers<kWide>(source.data, source.dtype, row + value),
                       is_k ? scales.k : scales.v);
}

template <typename Stored>
__global__ void __launch_bounds__(kKvCacheThreads) reshape_and_cache_kernel(ReshapeAndCache args) {
  const KvCacheView& cache = args.cache;
  const std::int64_t slot = load(args.slot_mapping + workgroup_x());
  if (!is_written(args, slot)) return;
  const std::int64_t block = slot / cache.block_size;
  const int offset = static_cast<int>(slot % cache.block_size);
  const int width = cache.num_kv_heads * cache.head_dim, values = cache.v == cache.k ? width : 2 * width;
  for (int i = thread_index() * kWide; i < values; i += threads_per_workgroup() * kWide)
    cache_values<Stored>(args, i, width, block, offset);
}

// The same with head_slots.
template <typename Stored>
__global__ void __launch_bounds__(kKvCacheThreads) cache_by_head_kernel(ReshapeAndCache args) {
  const KvCacheView& cache = args.cache;
  const std::int64_t* const slots = load(args.head_slots.of_tokens + workgroup_x());
  const std::int64_t of_all = load(args.slot_mapping + workgroup_x());
  const int width = cache.num_kv_heads * cache.head_dim, values = cache.v == cache.k ? width : 2 * width;
  for (int i = thread_index() * kWide; i < values; i += threads_per_workgroup() * kWide) {
    const int head = (i < width ? i : i - width) / cache.head_dim;
    const std::int64_t slot = slots == nullptr ? of_all : load(slots + args.head_slots.first + head);
    if (slot < 0) continue;
    cache_values<Stored>(args, i, width, slot / cache.block_size, static_cast<int>(slot % cache.block_size));
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
