// Every format that K and V are cached in on the CPU. One that does not lie in rows has the functions of Kivi.
#if defined(DCULAB_KERNELS_CPU_KV_FORMATS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_KV_FORMATS_INL_HPP_
#undef DCULAB_KERNELS_CPU_KV_FORMATS_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_KV_FORMATS_INL_HPP_
#endif

#include <limits>

#include "kernels/cpu/kv/fp8-inl.hpp"
#include "kernels/cpu/kv/int8-inl.hpp"
#include "kernels/cpu/kv/kivi-inl.hpp"
#include "kernels/cpu/kv/kvquant-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

// Calls body(null pointer to the format's type).
template <typename Body>
HWY_INLINE void with_cached_type(Dtype dtype, Body&& body) {
  switch (dtype) {
    case Dtype::fp8_e4m3:
      return body(static_cast<const Fp8E4m3*>(nullptr));
    case Dtype::fp8_e5m2:
      return body(static_cast<const Fp8E5m2*>(nullptr));
    case Dtype::int8:
      return body(static_cast<const Int8*>(nullptr));
    case Dtype::kivi4:
      return body(static_cast<const Kivi<4>*>(nullptr));
    case Dtype::kivi2:
      return body(static_cast<const Kivi<2>*>(nullptr));
    case Dtype::kvquant4:
      return body(static_cast<const KvQuant<4>*>(nullptr));
    case Dtype::kvquant3:
      return body(static_cast<const KvQuant<3>*>(nullptr));
    case Dtype::kvquant2:
      return body(static_cast<const KvQuant<2>*>(nullptr));
    default:
      return with_stored_type(nullptr, dtype, body);
  }
}

// Of formats that lie in rows only.
template <typename Body>
HWY_INLINE void with_row_type(Dtype dtype, Body&& body) {
  with_cached_type(dtype, [&]<typename T>(const T* type) {
    if constexpr (kLiesInRows<T>) body(type);
  });
}

// Tokens that queries read from blocks, the first of which is the last of `context` tokens.
[[nodiscard]] inline int paged_tokens(const KvCacheView& cache, int context) {
  int tokens = std::numeric_limits<int>::max();
  with_cached_type(cache.dtype, [&]<typename T>(const T*) {
    if constexpr (!kLiesInRows<T>) tokens = T::paged_tokens(cache, context);
  });
  return tokens;
}

// Plans to ask for what a tile is read from.
inline void plan_lines(LinesAhead& ahead, const KvCacheView& cache, const KvRuns& where) {
  ahead.clear();
  with_cached_type(cache.dtype, [&]<typename T>(const T*) {
    for (int i = 0; i < where.num_runs; ++i)
      if constexpr (kLiesInRows<T>)
        add_lines<T>(ahead, cache, where.runs[i]);
      else
        T::add_lines(ahead, cache, where.runs[i]);
  });
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
