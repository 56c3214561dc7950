// FP8 in the KV cache: one scale for K and one for V.
#if defined(DCULAB_KERNELS_CPU_KV_FP8_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_KV_FP8_INL_HPP_
#undef DCULAB_KERNELS_CPU_KV_FP8_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_KV_FP8_INL_HPP_
#endif

#include "kernels/cpu/fp8_values-inl.hpp"
#include "kernels/cpu/kv/rows-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

template <>
inline constexpr bool kIsScaled<Fp8E4m3> = true;
template <>
inline constexpr bool kIsScaled<Fp8E5m2> = true;

template <typename T>
requires kIsFp8<T>
class StoredRows<T> {
 public:
  explicit StoredRows(const KvCacheView& cache) : scales_(cache.extras.as<Fp8KvScales>()) {}

  [[nodiscard]] HWY_INLINE float k_scale(std::ptrdiff_t /*row*/) const { return scales_.k * kFactor; }
  [[nodiscard]] HWY_INLINE float v_scale(std::ptrdiff_t /*row*/) const { return scales_.v * kFactor; }

  void store_k(const float* values, int count, std::ptrdiff_t /*row*/, T* to) const {
    store_divided(values, count, scales_.k, to);
  }
  void store_v(const float* values, int count, std::ptrdiff_t /*row*/, T* to) const {
    store_divided(values, count, scales_.v, to);
  }

  void ask_k(LinesAhead& /*ahead*/, std::ptrdiff_t /*first_row*/, int /*rows*/) const {}
  void ask_v(LinesAhead& /*ahead*/, std::ptrdiff_t /*first_row*/, int /*rows*/) const {}

 private:
  static constexpr float kFactor = std::is_same_v<T, Fp8E4m3> ? kE4m3Factor : 1.0F;
  Fp8KvScales scales_;
};

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
