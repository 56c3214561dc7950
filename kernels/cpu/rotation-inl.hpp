// Rotary embedding of one head at one position.
#if defined(DCULAB_KERNELS_CPU_ROTATION_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_ROTATION_INL_HPP_
#undef DCULAB_KERNELS_CPU_ROTATION_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_ROTATION_INL_HPP_
#endif

#include <cmath>

#include "kernels/cpu/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

// The pairs (i, i + half) of one head, turned by the angles of one position.
inline void rotate(float* head, const float* cos_sin, int half) {
  for (int i = 0; i < half; i += kLanes) {
    const int count = half - i;
    const Vector cosine = load_first(cos_sin + i, count), sine = load_first(cos_sin + half + i, count);
    const Vector a = load_first(head + i, count), b = load_first(head + half + i, count);
    store_first(hn::Sub(hn::Mul(a, cosine), hn::Mul(b, sine)), head + i, count);
    store_first(hn::MulAdd(b, cosine, hn::Mul(a, sine)), head + half + i, count);
  }
}

// The pairs (2 i, 2 i + 1).
inline void rotate_neighbours(float* head, const float* cos_sin, int half) {
  int i = 0;
  for (; i + kLanes <= half; i += kLanes) {
    const Vector cosine = load(cos_sin + i), sine = load(cos_sin + half + i);
    Vector a, b;
    hn::LoadInterleaved2(F32(), head + 2 * i, a, b);
    hn::StoreInterleaved2(hn::Sub(hn::Mul(a, cosine), hn::Mul(b, sine)), hn::MulAdd(b, cosine, hn::Mul(a, sine)), F32(),
                          head + 2 * i);
  }
  for (; i < half; ++i) {
    const float a = head[2 * i], b = head[2 * i + 1];
    head[2 * i] = a * cos_sin[i] - b * cos_sin[half + i];
    head[2 * i + 1] = std::fma(b, cos_sin[i], a * cos_sin[half + i]);
  }
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
