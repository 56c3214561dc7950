// Sums of four products of bytes per 32-bit lane, u8 weights times s8 activations: what differs between instruction
// sets. All ways give the same integers.
#if defined(DCULAB_KERNELS_CPU_DOT4_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_DOT4_INL_HPP_
#undef DCULAB_KERNELS_CPU_DOT4_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_DOT4_INL_HPP_
#endif

#include "kernels/cpu/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

using U32 = hn::RebindToUnsigned<F32>;
using I32 = hn::RebindToSigned<F32>;
using Words = hn::Vec<U32>;  // four bytes a lane
using Sums = hn::Vec<I32>;

// By multiplications of 32-bit lanes: any instruction set.
struct PlainDot {
  using Partial = Sums;
  static constexpr int kPartialDots = 1 << 16;  // that a Partial holds, weights up to 15
  static constexpr int kInt8Offset = 0;         // the sums are those of q - kInt8Offset for 8-bit weights

  static HWY_INLINE Partial zero() { return hn::Zero(I32()); }
  static HWY_INLINE Partial dot(Partial sums, Words w, Words x) {
    const auto add = [&](auto shift) DCULAB_INLINE {
      const Sums value = hn::BitCast(I32(), hn::And(hn::ShiftRight<shift>(w), hn::Set(U32(), 0xFF)));
      const Sums signed_x = hn::ShiftRight<24>(hn::BitCast(I32(), hn::ShiftLeft<24 - shift>(x)));
      sums = hn::Add(sums, hn::Mul(value, signed_x));
    };
    unrolled<4>([&](auto i) DCULAB_INLINE { add(std::integral_constant<int, 8 * i>()); });
    return sums;
  }
  static HWY_INLINE Sums total(Partial partial) { return partial; }

  using Int8Weights = Words;
  static HWY_INLINE Int8Weights int8_weights(Words q) { return q; }
  static HWY_INLINE Sums int8_dot(Sums sums, Int8Weights w, Words x) { return dot(sums, w, x); }
};

#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
HWY_INLINE __m128i multiply_pairs(__m128i u8, __m128i s8) { return _mm_maddubs_epi16(u8, s8); }
HWY_INLINE __m128i add_pairs(__m128i s16) { return _mm_madd_epi16(s16, _mm_set1_epi16(1)); }
HWY_INLINE __m128i negate_where_negative(__m128i s8, __m128i sign) { return _mm_sign_epi8(s8, sign); }
#if HWY_TARGET != HWY_SSE4
HWY_INLINE __m256i multiply_pairs(__m256i u8, __m256i s8) { return _mm256_maddubs_epi16(u8, s8); }
HWY_INLINE __m256i add_pairs(__m256i s16) { return _mm256_madd_epi16(s16, _mm256_set1_epi16(1)); }
HWY_INLINE __m256i negate_where_negative(__m256i s8, __m256i sign) { return _mm256_sign_epi8(s8, sign); }
#endif
#if HWY_TARGET == HWY_AVX3
HWY_INLINE __m512i multiply_pairs(__m512i u8, __m512i s8) { return _mm512_maddubs_epi16(u8, s8); }
HWY_INLINE __m512i add_pairs(__m512i s16) { return _mm512_madd_epi16(s16, _mm512_set1_epi16(1)); }
HWY_INLINE __m512i negate_where_negative(__m512i s8, __m512i sign) {
  return _mm512_mask_sub_epi8(s8, _mm512_movepi8_mask(sign), _mm512_setzero_si512(), s8);
}
#endif

// By products of bytes summed in pairs to 16 bits, which saturate: a weight of up to 15 times 127 may be added eight
// times (8 * 2 * 15 * 127 = 30480), one in [-128, 127] once (2 * 128 * 127 = 32512), as its size times x with its sign.
struct PairDot {
  using I16 = hn::Repartition<std::int16_t, F32>;
  using Partial = hn::Vec<I16>;
  static constexpr int kPartialDots = 8;
  static constexpr int kInt8Offset = 128;

  static HWY_INLINE Partial zero() { return hn::Zero(I16()); }
  static HWY_INLINE Partial dot(Partial sums, Words w, Words x) {
    sums = hn::Add(sums, Partial{multiply_pairs(w.raw, x.raw)});
    // GCC would add up products first and run out of registers.
    asm("" : "+v"(sums.raw));
    return sums;
  }
  static HWY_INLINE Sums total(Partial partial) { return Sums{add_pairs(partial.raw)}; }

  struct Int8Weights {
    Words size, value;
  };
  static HWY_INLINE Int8Weights int8_weights(Words q) {
    const hn::Repartition<std::int8_t, F32> bytes;
    const Words value = hn::Xor(q, hn::Set(U32(), 0x80808080U));
    return {hn::BitCast(U32(), hn::Abs(hn::BitCast(bytes, value))), value};
  }
  static HWY_INLINE Sums int8_dot(Sums sums, const Int8Weights& w, Words x) {
    return hn::Add(sums, Sums{add_pairs(multiply_pairs(w.size.raw, negate_where_negative(x.raw, w.value.raw)))});
  }
};
#endif

#if HWY_TARGET == HWY_AVX3
// By vpdpbusd, which CPUs with AVX-512 VNNI have and Highway 1.0 has no name for.
struct VnniDot : PlainDot {
  static HWY_INLINE Sums dot(Sums sums, Words w, Words x) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sums.raw) : "v"(w.raw), "v"(x.raw));  // AT&T order: s8, u8, sums
    return sums;
  }
  static HWY_INLINE Sums int8_dot(Sums sums, Int8Weights w, Words x) { return dot(sums, w, x); }
};

inline bool cpu_has_vnni() {
  static const bool has = __builtin_cpu_supports("avx512vnni") != 0;
  return has;
}
#endif

// Calls body(Dot()) with the way that is fastest on this CPU.
template <typename Body>
HWY_INLINE auto with_dot(Body&& body) {
#if HWY_TARGET == HWY_AVX3
  if (cpu_has_vnni()) return body(VnniDot());
#endif
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return body(PairDot());
#else
  return body(PlainDot());
#endif
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
