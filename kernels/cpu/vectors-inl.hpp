// Vectors of floats from memory in any stored format, back to it, and their sums in one fixed order.
// Compiled once per Highway target.
#if defined(DCULAB_KERNELS_CPU_VECTORS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_VECTORS_INL_HPP_
#undef DCULAB_KERNELS_CPU_VECTORS_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_VECTORS_INL_HPP_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/dtype.hpp"
#include "kernels/number_format.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;
using Vector = hn::Vec<F32>;
constexpr int kLanes = HWY_LANES(float);  // every enabled target has vectors of fixed size

// For lambdas in inner loops: what they capture must stay in registers.
#undef DCULAB_INLINE
#define DCULAB_INLINE __attribute__((always_inline))

template <int... kIndices, typename Body>
HWY_INLINE void call_with_each(std::integer_sequence<int, kIndices...>, Body&& body) {
  (body(std::integral_constant<int, kIndices>()), ...);
}
// body(0) ... body(kCount - 1) in straight code, so that small arrays of vectors live in registers.
template <int kCount, typename Body>
HWY_INLINE void unrolled(Body&& body) {
  call_with_each(std::make_integer_sequence<int, kCount>(), body);
}

// Asks for the line at `from`, wherever it points to: into L1 and all above it, or into L2 and above.
template <typename T>
HWY_INLINE void prefetch_to_l1(const T* from) {
  __builtin_prefetch(from, 0, 3);
}
template <typename T>
HWY_INLINE void prefetch_to_l2(const T* from) {
  __builtin_prefetch(from, 0, 2);
}

// Bits of a stored value.
struct F16 {
  std::uint16_t bits;
};
struct Bf16 {
  std::uint16_t bits;
};

// Calls body(pointer to the stored type).
template <typename Body>
HWY_INLINE void with_stored_type(const void* data, Dtype dtype, Body&& body) {
  switch (dtype) {
    case Dtype::f16:
      return body(static_cast<const F16*>(data));
    case Dtype::bf16:
      return body(static_cast<const Bf16*>(data));
    default:
      return body(static_cast<const float*>(data));
  }
}

HWY_INLINE Vector load(const float* from) { return hn::LoadU(F32(), from); }
HWY_INLINE Vector load(const F16* from) {
  const hn::Rebind<hwy::float16_t, F32> d16;
  const hn::Rebind<std::uint16_t, F32> bits;
  return hn::PromoteTo(F32(), hn::BitCast(d16, hn::LoadU(bits, &from->bits)));
}
HWY_INLINE Vector load(const Bf16* from) {
  const hn::Rebind<std::uint16_t, F32> bits;
  const hn::RebindToUnsigned<F32> bits32;
  return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(bits32, hn::LoadU(bits, &from->bits))));
}

// The first `count` lanes, 0 in the others; reads nothing beyond them.
template <typename T>
HWY_INLINE Vector load_first(const T* from, int count) {
  if (count >= kLanes) return load(from);
  T lanes[kLanes] = {};
  std::memcpy(lanes, from, sizeof(T) * std::min<std::size_t>(static_cast<std::size_t>(count), kLanes));
  return load(lanes);
}

HWY_INLINE void store(Vector v, float* to) { hn::StoreU(v, F32(), to); }
HWY_INLINE void store(Vector v, F16* to) {
#if HWY_TARGET <= HWY_AVX2  // rounds to nearest even in hardware; the emulation in Highway truncates
  const hn::Rebind<hwy::float16_t, F32> d16;
  const hn::Rebind<std::uint16_t, F32> bits;
  hn::StoreU(hn::BitCast(bits, hn::DemoteTo(d16, v)), bits, &to->bits);
#else
  float lanes[kLanes];
  store(v, lanes);
  for (int i = 0; i < kLanes; ++i) to[i].bits = f16_from_f32(lanes[i]);
#endif
}
// As bf16_from_f32: to nearest even, and what is no number stays so.
HWY_INLINE void store(Vector v, Bf16* to) {
  const hn::RebindToUnsigned<F32> u32;
  const hn::RebindToSigned<F32> i32;
  const hn::Rebind<std::uint16_t, F32> u16;
  const auto bits = hn::BitCast(u32, v);
  const auto is_odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(u32, 1));
  const auto rounded = hn::Add(bits, hn::Add(is_odd, hn::Set(u32, 0x7FFF)));
  const auto quiet = hn::Or(bits, hn::Set(u32, 0x400000));
  const auto kept = hn::IfThenElse(hn::RebindMask(u32, hn::IsNaN(v)), quiet, rounded);
  hn::StoreU(hn::DemoteTo(u16, hn::BitCast(i32, hn::ShiftRight<16>(kept))), u16, &to->bits);
}

template <typename T>
HWY_INLINE void store_first(Vector v, T* to, int count) {
  if (count >= kLanes) return store(v, to);
  T lanes[kLanes];
  store(v, lanes);
  std::memcpy(to, lanes, sizeof(T) * std::min<std::size_t>(static_cast<std::size_t>(count), kLanes));
}

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void sum_each(Vector v0, Vector v1, Vector v2, Vector v3, float* sums) {
  store(v0, sums), store(v1, sums + 1), store(v2, sums + 2), store(v3, sums + 3);
}
#else
// Adds the upper half of a vector to the lower until four lanes remain.
template <class D, class V>
HWY_INLINE hn::Vec<hn::Full128<float> > fold_to_four(D, V v) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return fold_to_four(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

// sums[i] = the sum over all lanes of vector i, i < 4.
HWY_INLINE void sum_each(Vector v0, Vector v1, Vector v2, Vector v3, float* sums) {
  const hn::Full128<float> d;
  const auto a = fold_to_four(F32(), v0), b = fold_to_four(F32(), v1);
  const auto c = fold_to_four(F32(), v2), e = fold_to_four(F32(), v3);
  const auto ab = hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  const auto ce = hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::Add(hn::ConcatLowerLower(d, ce, ab), hn::ConcatUpperUpper(d, ce, ab)), d, sums);
}
#endif

HWY_INLINE float sum(Vector v) {
  float sums[4];
  sum_each(v, v, v, v, sums);
  return sums[0];
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
