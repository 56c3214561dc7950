// What one lane of a plain product adds to its sum: the product of two floats, or those of two pairs of BF16 values.
// A pair of BF16 values is as wide as a float, so that both run through the same loops.
#if defined(DCULAB_KERNELS_CPU_MATMUL_TERMS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_MATMUL_TERMS_INL_HPP_
#undef DCULAB_KERNELS_CPU_MATMUL_TERMS_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_MATMUL_TERMS_INL_HPP_
#endif

#include "kernels/cpu/weight_rows-inl.hpp"
#include "kernels/ops.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

// In-features whose sum is taken first.
constexpr int kBlockK = 2048;

struct Bf16Pair {
  Bf16 even, odd;
};

// Pairs, carried in the lanes of a float vector.
HWY_INLINE Vector load(const Bf16Pair* from) { return load(reinterpret_cast<const float*>(from)); }

// F32 activations; weights are widened.
struct FloatTerms {
  using X = float;                        // what a lane holds of an activation
  using Packed = FloatTerms;              // what packed operands are multiplied by,
  static constexpr int kWords = 1;        // and how many of its lanes stand for an X
  static constexpr int kBlock = kBlockK;  // of X

  static HWY_INLINE Vector add(Vector x, Vector w, Vector sum) { return hn::MulAdd(x, w, sum); }
  template <int>
  static HWY_INLINE Vector word(Vector x) {
    return x;
  }
  // Calls body(matrix); `columns` of X.
  template <typename Body>
  static HWY_INLINE void with_weights(const WeightView& weight, int columns, Body&& body) {
    if (weight.dtype == Dtype::fp8_e4m3)
      return body(Fp8Matrix{static_cast<const Fp8E4m3*>(weight.data), columns, weight.scales});
    with_stored_type(weight.data, weight.dtype, [&]<typename T>(const T* values) {
      body(PlainMatrix<T>{values, columns});
    });
  }
};

// Activations rounded to BF16, and weights in BF16: the odd ones of each pair first, as vdpbf16ps does. A product is
// exact in F32, so that every instruction set has the same terms.
struct PairTerms {
  using X = Bf16Pair;
  using Packed = FloatTerms;
  static constexpr int kWords = 2;
  static constexpr int kBlock = kBlockK / 2;

  template <int kIndex>
  static HWY_INLINE Vector word(Vector x) {
    const hn::RebindToUnsigned<F32> u32;
    const auto bits = hn::BitCast(u32, x);
    if constexpr (kIndex == 0) return hn::BitCast(F32(), hn::And(bits, hn::Set(u32, 0xFFFF0000U)));
    return hn::BitCast(F32(), hn::ShiftLeft<16>(bits));
  }
  static HWY_INLINE Vector add(Vector x, Vector w, Vector sum) {
    return hn::MulAdd(word<1>(x), word<1>(w), hn::MulAdd(word<0>(x), word<0>(w), sum));
  }
  template <typename Body>
  static HWY_INLINE void with_weights(const WeightView& weight, int columns, Body&& body) {
    body(PlainMatrix<Bf16Pair>{static_cast<const Bf16Pair*>(weight.data), columns});
  }
};

#if HWY_TARGET == HWY_AVX3
// By vdpbf16ps, which CPUs with AVX-512 BF16 have and Highway 1.0 does not use. It has the bits of PairTerms as long as
// no number is denormal: it takes those for 0.
struct Bf16DotTerms : PairTerms {
  using Packed = Bf16DotTerms;
  static constexpr int kWords = 1;

  template <int>
  static HWY_INLINE Vector word(Vector x) {
    return x;
  }
  static HWY_INLINE Vector add(Vector x, Vector w, Vector sum) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(x.raw), "v"(w.raw));
    return sum;
  }
};

inline bool cpu_has_bf16_dot() {
  static const bool has = __builtin_cpu_supports("avx512bf16") != 0;
  return has;
}

// Zen 4 and 5 start as many of them as F32 multiply-adds, Intel's cores a quarter (0.71 ns each on a Xeon of family 6,
// model 207, where a multiply-add takes 0.18), which is half the products.
inline bool cpu_has_fast_bf16_dot() {
  static const bool is_fast = cpu_has_bf16_dot() && __builtin_cpu_is("amd") != 0;
  return is_fast;
}
#endif

// Calls body(Terms()) with the pairs that are fastest on this CPU where memory is what takes time: fewest instructions.
template <typename Body>
HWY_INLINE void with_streamed_pairs(Body&& body) {
#if HWY_TARGET == HWY_AVX3
  if (cpu_has_bf16_dot()) return body(Bf16DotTerms());
#endif
  body(PairTerms());
}

// The same where multiplying is.
template <typename Body>
HWY_INLINE void with_packed_pairs(Body&& body) {
#if HWY_TARGET == HWY_AVX3
  if (cpu_has_fast_bf16_dot()) return body(Bf16DotTerms());
#endif
  body(PairTerms());
}

// pairs[count / 2] = x[count], rounded to nearest even.
HWY_INLINE void round_to_pairs(const float* x, int count, Bf16Pair* pairs) {
  Bf16* const values = &pairs->even;
  for (int i = 0; i < count; i += kLanes) store_first(load_first(x + i, count - i), values + i, count - i);
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
