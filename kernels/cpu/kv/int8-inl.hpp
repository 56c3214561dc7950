// int8 in the KV cache: a scale for each token and head, its largest magnitude over 127.
#if defined(DCULAB_KERNELS_CPU_KV_INT8_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_KV_INT8_INL_HPP_
#undef DCULAB_KERNELS_CPU_KV_INT8_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_KV_INT8_INL_HPP_
#endif

#include <algorithm>

#include "kernels/cpu/kv/rows-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

struct Int8 {
  std::int8_t code;
};

HWY_INLINE Vector load(const Int8* from) {
  const hn::Rebind<std::int8_t, F32> d8;
  return hn::ConvertTo(F32(), hn::PromoteTo(hn::RebindToSigned<F32>(), hn::LoadU(d8, &from->code)));
}

HWY_INLINE void store(Vector v, Int8* to) {
  const hn::Rebind<std::int8_t, F32> d8;
  hn::StoreU(hn::DemoteTo(d8, hn::NearestInt(v)), d8, &to->code);
}

template <>
inline constexpr bool kIsScaled<Int8> = true;

template <>
class StoredRows<Int8> {
 public:
  explicit StoredRows(const KvCacheView& cache) : scales_(cache.extras.as<Int8KvScales>()) {}

  [[nodiscard]] HWY_INLINE float k_scale(std::ptrdiff_t row) const { return scales_.k[row]; }
  [[nodiscard]] HWY_INLINE float v_scale(std::ptrdiff_t row) const { return scales_.v[row]; }

  void store_k(const float* values, int count, std::ptrdiff_t row, Int8* to) const {
    store(values, count, scales_.k[row], to);
  }
  void store_v(const float* values, int count, std::ptrdiff_t row, Int8* to) const {
    store(values, count, scales_.v[row], to);
  }

  void ask_k(LinesAhead& ahead, std::ptrdiff_t first_row, int rows) const {
    ahead.add(scales_.k + first_row, 4 * rows);
  }
  void ask_v(LinesAhead& ahead, std::ptrdiff_t first_row, int rows) const {
    ahead.add(scales_.v + first_row, 4 * rows);
  }

 private:
  static void store(const float* values, int count, float& scale, Int8* to) {
    Vector largest = hn::Zero(F32());
    for (int i = 0; i < count; i += kLanes) largest = hn::Max(largest, hn::Abs(load_first(values + i, count - i)));
    scale = hn::GetLane(hn::MaxOfLanes(F32(), largest)) / 127.0F;
    if (scale > 0)
      store_divided(values, count, scale, to);
    else
      std::fill_n(to, count, Int8{0});
  }

  Int8KvScales scales_;
};

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
