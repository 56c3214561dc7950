// What the CPU kernels refuse instead of computing something else: std::invalid_argument says what and in which kernel.
#pragma once

#include <stdexcept>
#include <string>

#include "core/kv/table.hpp"
#include "kernels/kv/kivi.hpp"
#include "kernels/kv/kvquant.hpp"
#include "kernels/ops.hpp"

namespace dculab::kernels::cpu {

// Allocates nothing while it holds: kernels run inside a step, which may not allocate.
inline void require(bool holds, const char* kernel, const char* what) {
  if (!holds) throw std::invalid_argument(std::string("cpu ") + kernel + ": " + what);
}

inline void require_plain_floats(Dtype dtype, const char* kernel, const char* tensor) {
  if (dtype == Dtype::f32 || dtype == Dtype::f16 || dtype == Dtype::bf16) return;
  throw std::invalid_argument(std::string("cpu ") + kernel + ": " + tensor + " in " + std::string(name(dtype)) +
                              " (f32, f16 and bf16 are supported)");
}

// Of kernels that know no other formats than those that lie in rows.
inline void require_rows(const KvCacheView& cache, const char* kernel) {
  if (lies_in_rows(cache.dtype)) return;
  throw std::invalid_argument(std::string("cpu ") + kernel + ": a KV cache of " + std::string(name(cache.dtype)) +
                              " does not lie in rows");
}

inline bool is_whole(const Int8KvScales& scales) { return scales.k != nullptr && scales.v != nullptr; }
inline bool is_whole(const KvResidual& residual) {
  return residual.k != nullptr && residual.tokens > 0 && residual.tokens % kKiviGroup == 0;
}

inline bool is_whole(const KvQuantExtras& extras) {
  return extras.calibration != nullptr && extras.k_outliers != nullptr && extras.v_outliers != nullptr &&
         extras.v_scales != nullptr && extras.width > 0 && extras.width <= kMostKvQuantWidth;
}

inline void require_kv_cache(const KvCacheView& cache, const char* kernel) {
  if (is_kv_format(cache.dtype) && cache.head_dim % kv_format(cache.dtype).head_dim_multiple != 0)
    throw std::invalid_argument(std::string("cpu ") + kernel + ": " + head_dim_problem(cache.dtype, cache.head_dim));
  switch (cache.dtype) {
    case Dtype::kivi4:
    case Dtype::kivi2:
      return require(cache.extras.are_given() && is_whole(cache.extras.as<KiviExtras>().residual), kernel,
                     "kivi4 and kivi2 need a residual of a multiple of 32 tokens");
    case Dtype::kvquant4:
    case Dtype::kvquant3:
    case Dtype::kvquant2:
      return require(cache.extras.are_given() && is_whole(cache.extras.as<KvQuantExtras>()), kernel,
                     "kvquant4, kvquant3 and kvquant2 need calibration and outliers");
    case Dtype::int8:
      return require(cache.extras.are_given() && is_whole(cache.extras.as<Int8KvScales>()), kernel,
                     "an int8 KV cache needs scales");
    case Dtype::fp8_e4m3:
    case Dtype::fp8_e5m2:
      return;
    default:
      require_plain_floats(cache.dtype, kernel, "KV cache");
  }
}

}  // namespace dculab::kernels::cpu
