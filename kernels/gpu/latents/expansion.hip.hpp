// What stands before and after the product that expands latents to K and V of all heads: a workgroup for each token.
#pragma once

#include "kernels/gpu/kv_cache/paged_kv.hpp"
#include "kernels/gpu/latent_args.hpp"
#include "kernels/gpu/layers/rows.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

inline constexpr int kExpansionThreads = 256;

template <typename Stored>
__global__ void __launch_bounds__(kExpansionThreads) gather_latents_kernel(GatherLatents args) {
  const KvCacheView& cache = args.cache;
  const std::int64_t from = cache_row_of_token(cache, args.block_table, 0, args.begin + workgroup_x());
  const std::int64_t to = static_cast<std::int64_t>(workgroup_x()) * cache.head_dim;
  for (int i = thread_index() * kWide; i < cache.head_dim; i += threads_per_workgroup() * kWide) {
    auto numbers = load_packed<kWide, Stored>(cache.k, from + i);
    if constexpr (kIsScaled<Stored>) {
      DCULAB_UNROLL
      for (int j = 0; j < kWide; ++j) numbers[j] *= cache.extras.as<Fp8KvScales>().k;
    }
    store_numbers<kWide>(args.out.data, args.out.dtype, to + i, numbers);
  }
}

// Eight values from `value` on of a head's key: its own, the token's one key, then zeros.
__device__ __forceinline__ Numbers<kWide> expanded_key(const StoreExpanded& args, std::int64_t token, int head,
                                                       int value) {
  const LatentSizes& sizes = args.sizes;
  if (value < sizes.qk_nope_head_dim)
    return load_numbers<kWide>(args.expanded.data, args.expanded.dtype,
                               (token * sizes.num_heads + head) * sizes.expanded_head_dim() + value);
  if (value < sizes.qk_head_dim())
    return load_numbers<kWide>(args.latents.data, args.latents.dtype,
                               token * sizes.latent_width() + sizes.kv_lora_rank + value - sizes.qk_nope_head_dim);
  return {};
}

// The same of a head's value.
__device__ __forceinline__ Numbers<kWide> expanded_value(const StoreExpanded& args, std::int64_t token, int head,
                                                         int value) {
  const LatentSizes& sizes = args.sizes;
  if (value >= sizes.v_head_dim) return {};
  const std::int64_t row = (token * sizes.num_heads + head) * sizes.expanded_head_dim();
  return load_numbers<kWide>(args.expanded.data, args.expanded.dtype, row + sizes.qk_nope_head_dim + value);
}

template <int kWave>
__global__ void __launch_bounds__(kExpansionThreads) store_expanded_kernel(StoreExpanded args) {
  const KvCacheView& cache = args.cache;
  const int token = workgroup_x(), slot = args.first_slot + token;
  const int block = slot / cache.block_size, offset = slot % cache.block_size;
  const int keys = cache.head_dim / kWide, values = cache.value_width() / kWide;
  for (int i = thread_index(); i < cache.num_kv_heads * (keys + values); i += kExpansionThreads) {
    const int head = i / (keys + values), part = i % (keys + values);
    const std::int64_t row = (static_cast<std::int64_t>(block) * cache.num_kv_heads + head) * cache.block_size + offset;
    if (part < keys)
      store_packed<kWide, Half>(cache.k, row * cache.head_dim + part * kWide,
                                expanded_key(args, token, head, part * kWide));
    else
      store_packed<kWide, Half>(cache.v, row * cache.value_width() + (part - keys) * kWide,
                                expanded_value(args, token, head, (part - keys) * kWide));
  }
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
