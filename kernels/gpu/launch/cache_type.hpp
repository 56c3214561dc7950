// From the format of a KV cache, known at run time, to the type that kernels are compiled for.
#pragma once

#include <bit>

#include "kernels/gpu/launch/supported.hpp"
#include "kernels/gpu/numbers.hpp"
#include "kernels/ops.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// Calls function.operator()<Stored>().
template <typename Function>
void with_cache_type(Dtype dtype, Function function) {
  require_dtype("a KV cache", dtype, {Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3, Dtype::fp8_e5m2});
  if (dtype == Dtype::f16) return function.template operator()<Half>();
  if (dtype == Dtype::bf16) return function.template operator()<Bf16>();
  if (dtype == Dtype::fp8_e4m3) return function.template operator()<Fp8E4M3>();
  function.template operator()<Fp8E5M2>();
}

// The same, int8 included.
template <typename Function>
void with_cached_type(Dtype dtype, Function function) {
  require_dtype("a KV cache", dtype, {Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3, Dtype::fp8_e5m2, Dtype::int8});
  if (dtype == Dtype::int8) return function.template operator()<Int8>();
  with_cache_type(dtype, function);
}

// Lanes that share a head of an int8 cache, eight values each: a power of two.
inline int int8_head_lanes(const KvCacheView& cache) {
  constexpr int kMost = 256;  // values: the smallest wave
  if (cache.head_dim > kMost)
    throw InputError("an int8 KV cache of head_dim " + std::to_string(cache.head_dim) +
                     " has no GPU kernel; there is one up to " + std::to_string(kMost));
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>((cache.head_dim + 7) / 8)));
}

inline void require_aligned_cache(const KvCacheView& cache) {
  require_aligned("the K cache", cache.k);
  require_aligned("the V cache", cache.v);
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
