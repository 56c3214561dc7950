// An int8 cache: of each token and head codes and a scale, the largest magnitude / 127. Groups of lanes have a head.
#pragma once

#include "kernels/gpu/kv_cache/kv_cache.hip.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// A lane's eight values of a head, from value `d` on; zeros beyond its end. All lanes of the wave take part, groups of
// `lanes` neighbours for a head each. Nothing is stored where `codes` is null.
template <int kWave>
__device__ __forceinline__ void store_int8_head(const Numbers<kWide>& numbers, int d, int head_dim, int lanes,
                                                std::int8_t* codes, float* scale) {
  float largest = 0;
  DCULAB_UNROLL
  for (int i = 0; i < kWide; ++i) largest = larger(larger(numbers[i], -numbers[i]), largest);  // 0 has no sign
  for (int mask = 1; mask < lanes; mask *= 2) largest = larger(shuffle_xor<kWave>(largest, mask), largest);
  if (codes == nullptr || d >= head_dim) return;
  const float step = largest / 127.0F;
  Pack<std::int8_t, kWide> pack;
  DCULAB_UNROLL
  for (int i = 0; i < kWide; ++i)
    pack[i] = static_cast<std::int8_t>(step == 0 ? 0.0F : round_to_even(numbers[i] / step));
  store(reinterpret_cast<Pack<std::int8_t, kWide>*>(codes + d), pack);
  if (d == 0) store(scale, step);
}

// The same to a slot of the cache; < 0: nothing is stored.
template <int kWave>
__device__ __forceinline__ void store_int8_in(const KvCacheView& cache, bool is_k, std::int64_t slot, int head,
                                              const Numbers<kWide>& numbers, int d, int lanes) {
  const auto scales = cache.extras.as<Int8KvScales>();
  const std::int64_t block = slot < 0 ? 0 : slot / cache.block_size;
  const std::int64_t row = token_row(cache, block, head, static_cast<int>(slot - block * cache.block_size));
  auto* const codes = static_cast<std::int8_t*>(is_k ? cache.k : cache.v);
  store_int8_head<kWave>(numbers, d, cache.head_dim, lanes, slot < 0 ? nullptr : codes + row * cache.head_dim,
                         (is_k ? scales.k : scales.v) + row);
}

struct CacheInt8Launch {
  ReshapeAndCache args;
  int lanes = 1;  // of a head: a power of two
};

// The slot of a head of the workgroup's token; < 0: it is not written.
__device__ __forceinline__ std::int64_t slot_of_head(const ReshapeAndCache& args, int head) {
  const std::int64_t* own = nullptr;
  if (args.head_slots.of_tokens != nullptr) own = load(args.head_slots.of_tokens + workgroup_x());
  const std::int64_t slot =
      own != nullptr ? load(own + args.head_slots.first + head) : load(args.slot_mapping + workgroup_x());
  return is_written(args, slot) ? slot : -1;
}

// Grid: tokens.
template <int kWave>
__global__ void __launch_bounds__(kKvCacheThreads) cache_int8_kernel(CacheInt8Launch launch) {
  const ReshapeAndCache& args = launch.args;
  const KvCacheView& cache = args.cache;
  const int groups = threads_per_workgroup() / launch.lanes, d = thread_index() % launch.lanes * kWide;
  for (int first = 0; first < 2 * cache.num_kv_heads; first += groups) {
    const int index = first + thread_index() / launch.lanes;
    const bool is_k = index < cache.num_kv_heads, exists = index < 2 * cache.num_kv_heads;
    const int head = is_k ? index : index - cache.num_kv_heads;
    Numbers<kWide> numbers{};
    std::int64_t slot = -1;
    if (exists) slot = slot_of_head(args, head);
    if (slot >= 0 && d < cache.head_dim) {
      const Input& source = is_k ? args.k : args.v;
      numbers = load_numbers<kWide>(source.data, source.dtype,
                                    workgroup_x() * args.kv_stride + std::int64_t{head} * cache.head_dim + d);
    }
    store_int8_in<kWave>(cache, is_k, slot, head, numbers, d, launch.lanes);
  }
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
