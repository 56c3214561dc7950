// From the format of a KV cache, known at run time, to the type that kernels are compiled for.
#pragma once

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

inline void require_aligned_cache(const KvCacheView& cache) {
  require_aligned("the K cache", cache.k);
  require_aligned("the V cache", cache.v);
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
