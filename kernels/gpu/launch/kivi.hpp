// Refuses kivi4 and kivi2 caches that no kernel is compiled for.
#pragma once

#include <bit>

#include "kernels/gpu/kv/kivi.hpp"
#include "kernels/gpu/launch/cache_type.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

inline void require_kivi_cache(const KvCacheView& cache) {
  constexpr int kMostHeadDim = 256;
  require_dtype("a KIVI cache", cache.dtype, {Dtype::kivi4, Dtype::kivi2});
  if (cache.head_dim < kKiviGroup || cache.head_dim > kMostHeadDim || cache.head_dim % kKiviGroup != 0)
    throw InputError("a KIVI cache of head_dim " + std::to_string(cache.head_dim) +
                     " has no GPU kernel; there is one for multiples of 32 up to " + std::to_string(kMostHeadDim));
  if (cache.block_size < 1 || cache.block_size > 256 || !std::has_single_bit(static_cast<unsigned>(cache.block_size)))
    throw InputError("a KIVI cache in blocks of " + std::to_string(cache.block_size) +
                     " tokens has no GPU kernel; there is one for powers of two up to 256");
  const auto kivi = cache.extras.as<KiviOnDevice>();
  if (kivi.residual.tokens < kKiviGroup || kivi.residual.tokens % kKiviGroup != 0)
    throw InputError("a residual of " + std::to_string(kivi.residual.tokens) +
                     " tokens has no GPU kernel; there is one for multiples of " + std::to_string(kKiviGroup));
  require_multiple("K and V", "values between tokens", kivi.stride, 8);
  require_aligned_cache(cache);
  require_aligned("the residual of K", kivi.residual.k);
  require_aligned("the residual of V", kivi.residual.v);
  require_aligned("K of new tokens", kivi.new_k);
  require_aligned("V of new tokens", kivi.new_v);
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
