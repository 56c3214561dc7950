// The exponential function without subnormal numbers. On x86 an operation that makes or meets one takes a hundred cycles
// and more: attention over random weights, whose scores lie hundreds apart, took twelve times as long.
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

// e^x, and 0 for what is less than 2^-100: added to a sum of about 1 it changes no bit. Infinity from 104 on.
HWY_INLINE Vector exponential(Vector x) {
  const Vector lowest = hn::Set(F32(), -69.3F), highest = hn::Set(F32(), 104.0F);
  const Vector defined = hn::Min(hn::Max(x, lowest), highest);
  return hn::IfThenElseZero(hn::Ge(x, lowest), hn::Exp(F32(), defined));
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
