// The exponential function, whose own result is never subnormal. On x86 an operation that makes or meets such a number
// takes a hundred cycles and more: attention over random weights, whose scores lie hundreds apart, took twelve times as
// long. What is multiplied by the result may still become subnormal, such as a sum that fades from tile to tile.
#if defined(DCULAB_KERNELS_CPU_EXPONENTIAL_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_EXPONENTIAL_INL_HPP_
#undef DCULAB_KERNELS_CPU_EXPONENTIAL_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_EXPONENTIAL_INL_HPP_
#endif

#include <hwy/contrib/math/math-inl.h>

#include "kernels/cpu/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

// e^x, and 0 where that is less than 2^-100 (e^-69.3). So such weights and decays of a softmax, whose largest weight is
// 1, are 0, and so is the tail of GELU with erf; SiLU and GELU with tanh add 1 to the result, so that no bit changes.
// Infinity from 104 on.
HWY_INLINE Vector exponential(Vector x) {
  const Vector lowest = hn::Set(F32(), -69.3F), highest = hn::Set(F32(), 104.0F);
  const Vector defined = hn::Min(hn::Max(x, lowest), highest);
  return hn::IfThenElseZero(hn::Ge(x, lowest), hn::Exp(F32(), defined));
}

// cap * tanh(x / cap)
HWY_INLINE Vector capped(Vector x, Vector cap) { return hn::Mul(cap, hn::Tanh(F32(), hn::Div(x, cap))); }

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
