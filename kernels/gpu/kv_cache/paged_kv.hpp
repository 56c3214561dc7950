// Where the keys and values of a token lie in the paged cache, as kernels see it.
#pragma once

#include "kernels/gpu/numbers.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// Which row of the cache is that of one KV head, of token `offset` of a block.
__device__ __forceinline__ std::int64_t token_row(const KvCacheView& cache, std::int64_t block, int kv_head,
                                                  int offset) {
  return (block * cache.num_kv_heads + kv_head) * cache.block_size + offset;
}

// Index of the first of its head_dim values.
__device__ __forceinline__ std::int64_t cache_row(const KvCacheView& cache, std::int64_t block, int kv_head,
                                                  int offset) {
  return token_row(cache, block, kv_head, offset) * cache.head_dim;
}

// The same of the `token`-th token of the sequence whose block table this is.
__device__ __forceinline__ std::int64_t row_of_token(const KvCacheView& cache, const std::int32_t* block_table,
                                                     int kv_head, int token) {
  const auto position = static_cast<std::uint32_t>(token), block_size = static_cast<std::uint32_t>(cache.block_size);
  const std::int32_t block = load(block_table + position / block_size);
  return token_row(cache, block, kv_head, static_cast<int>(position % block_size));
}
__device__ __forceinline__ std::int64_t cache_row_of_token(const KvCacheView& cache, const std::int32_t* block_table,
                                                           int kv_head, int token) {
  return row_of_token(cache, block_table, kv_head, token) * cache.head_dim;
}

// FP8 stands for its value times a scale of K or of V; wider formats have no scale.
template <typename Stored>
inline constexpr bool kIsScaled = std::is_same_v<Stored, Fp8E4M3> || std::is_same_v<Stored, Fp8E5M2>;

__device__ __forceinline__ bool is_fp8(const KvCacheView& cache) {
  return cache.dtype == Dtype::fp8_e4m3 || cache.dtype == Dtype::fp8_e5m2;
}
__device__ __forceinline__ bool is_of_bytes(const KvCacheView& cache) {
  return is_fp8(cache) || cache.dtype == Dtype::int8;
}
__device__ __forceinline__ float k_scale_of(const KvCacheView& cache) {
  return is_fp8(cache) ? cache.extras.as<Fp8KvScales>().k : 1.0F;
}
__device__ __forceinline__ float v_scale_of(const KvCacheView& cache) {
  return is_fp8(cache) ? cache.extras.as<Fp8KvScales>().v : 1.0F;
}

// int8: each token and head has a scale.
template <typename Stored>
inline constexpr bool kHasTokenScales = std::is_same_v<Stored, Int8>;

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
