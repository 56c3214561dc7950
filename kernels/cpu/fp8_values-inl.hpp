// FP8 as vectors of floats and back.
#if defined(DCULAB_KERNELS_CPU_FP8_VALUES_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_FP8_VALUES_INL_HPP_
#undef DCULAB_KERNELS_CPU_FP8_VALUES_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_FP8_VALUES_INL_HPP_
#endif

#include "kernels/cpu/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

struct Fp8E4m3 {
  static constexpr Fp8Format kFormat = kFp8E4m3;
  std::uint8_t bits;
};
struct Fp8E5m2 {
  static constexpr Fp8Format kFormat = kFp8E5m2;
  std::uint8_t bits;
};
template <typename T>
constexpr bool kIsFp8 = std::is_same_v<T, Fp8E4m3> || std::is_same_v<T, Fp8E5m2>;

using Bytes8 = hn::Rebind<std::uint8_t, F32>;
using Words16 = hn::Rebind<std::uint16_t, F32>;
using Int32 = hn::RebindToSigned<F32>;

// What load() of E4M3 leaves to the scale: its exponent has bias 7, that of F16 15.
constexpr float kE4m3Factor = 256.0F;

#if HWY_TARGET <= HWY_AVX2
HWY_INLINE Vector from_f16_bits(hn::Vec<Words16> bits) {
  const hn::Rebind<hwy::float16_t, F32> d16;
  return hn::PromoteTo(F32(), hn::BitCast(d16, bits));
}

// E5M2 is the upper byte of an F16.
HWY_INLINE Vector load(const Fp8E5m2* from) {
  return from_f16_bits(hn::ShiftLeft<8>(hn::PromoteTo(Words16(), hn::LoadU(Bytes8(), &from->bits))));
}

// E4M3 / 256. Shifted left by 7, exponent and mantissa lie where F16 has them, and subnormals are subnormals. Adding
// the sign to itself moves it from bit 14 to bit 15; a NaN (all ones) is the only value that a last mantissa bit more
// carries into the free bit of the exponent, which makes it F16's NaN.
HWY_INLINE Vector load(const Fp8E4m3* from) {
  const Words16 d;
  const auto shifted = hn::ShiftLeft<7>(hn::PromoteTo(d, hn::LoadU(Bytes8(), &from->bits)));
  const auto bit14 = hn::Set(d, 0x4000);
  const auto in_place = hn::Add(shifted, hn::And(shifted, bit14));
  const auto nan_bit = hn::And(hn::Add(in_place, hn::Set(d, 0x0080)), bit14);
  return from_f16_bits(hn::Or(in_place, nan_bit));
}
#else  // F16 is emulated, without infinities and NaN
HWY_INLINE Vector load(const Fp8E5m2* from) {
  float lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) lanes[i] = f32_from_fp8_e5m2(from[i].bits);
  return load(lanes);
}
HWY_INLINE Vector load(const Fp8E4m3* from) {
  float lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) lanes[i] = f32_from_fp8_e4m3(from[i].bits) / kE4m3Factor;
  return load(lanes);
}
#endif

// F32 to the nearest FP8, as fp8_from_f32 does one at a time.
template <typename T>
HWY_INLINE void store_fp8(Vector value, T* to) {
  constexpr Fp8Format kFormat = T::kFormat;
  constexpr int kDroppedBits = 23 - kFormat.mantissa_bits;
  const Int32 d;
  const auto bits = hn::BitCast(d, value);
  const auto magnitude = hn::And(bits, hn::Set(d, 0x7FFFFFFF));
  const auto last_kept = hn::And(hn::ShiftRight<kDroppedBits>(magnitude), hn::Set(d, 1));
  const auto rounded = hn::Add(magnitude, hn::Add(last_kept, hn::Set(d, (1 << (kDroppedBits - 1)) - 1)));
  const auto normal = hn::ShiftRight<kDroppedBits>(hn::Sub(rounded, hn::Set(d, (127 - kFormat.bias) << 23)));
  // A subnormal is a multiple of its format's smallest value; adding 2^23 times that lets the FPU round.
  constexpr int kUnitExponent = 127 + 1 - kFormat.bias - kFormat.mantissa_bits + 23;
  const auto unit = hn::Set(d, kUnitExponent << 23);
  const auto small = hn::Sub(hn::BitCast(d, hn::Add(hn::BitCast(F32(), magnitude), hn::BitCast(F32(), unit))), unit);
  const auto is_small = hn::Lt(magnitude, hn::Set(d, (128 - kFormat.bias) << 23));
  const auto finite = hn::Min(hn::IfThenElse(is_small, small, normal), hn::Set(d, kFormat.largest_finite));
  const auto is_nan = hn::Gt(magnitude, hn::Set(d, 0x7F800000));
  const auto code = hn::IfThenElse(is_nan, hn::Set(d, kFormat.nan), finite);
  const auto sign = hn::And(hn::ShiftRight<24>(bits), hn::Set(d, 0x80));
  hn::StoreU(hn::DemoteTo(Bytes8(), hn::Or(code, sign)), Bytes8(), &to->bits);
}
HWY_INLINE void store(Vector v, Fp8E4m3* to) { store_fp8(v, to); }
HWY_INLINE void store(Vector v, Fp8E5m2* to) { store_fp8(v, to); }

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
