// As many vectors as each has lanes, transposed in registers.
#if defined(DCULAB_KERNELS_CPU_TRANSPOSE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_TRANSPOSE_INL_HPP_
#undef DCULAB_KERNELS_CPU_TRANSPOSE_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_TRANSPOSE_INL_HPP_
#endif

#include "kernels/cpu/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
// Within each group of four lanes: v[i] becomes lane i of the four.
HWY_INLINE void transpose_fours(Vector* v) {
  const hn::Repartition<double, F32> pairs;
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(F32(), v[0], v[1]));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(F32(), v[2], v[3]));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(F32(), v[0], v[1]));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(F32(), v[2], v[3]));
  v[0] = hn::BitCast(F32(), hn::InterleaveLower(pairs, low01, low23));
  v[1] = hn::BitCast(F32(), hn::InterleaveUpper(pairs, low01, low23));
  v[2] = hn::BitCast(F32(), hn::InterleaveLower(pairs, high01, high23));
  v[3] = hn::BitCast(F32(), hn::InterleaveUpper(pairs, high01, high23));
}

// Groups of four lanes as elements: v[4 g] becomes group g of all, for g < lanes / 4.
HWY_INLINE void transpose_groups(Vector* v) {
#if HWY_TARGET == HWY_AVX2
  const Vector low = hn::ConcatLowerLower(F32(), v[4], v[0]);
  v[4] = hn::ConcatUpperUpper(F32(), v[4], v[0]);
  v[0] = low;
#elif HWY_TARGET <= HWY_AVX3
  const Vector low02 = hn::ConcatLowerLower(F32(), v[8], v[0]), low13 = hn::ConcatLowerLower(F32(), v[12], v[4]);
  const Vector high02 = hn::ConcatUpperUpper(F32(), v[8], v[0]), high13 = hn::ConcatUpperUpper(F32(), v[12], v[4]);
  v[0] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(low13), low02);
  v[4] = hn::OddEvenBlocks(low13, hn::SwapAdjacentBlocks(low02));
  v[8] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(high13), high02);
  v[12] = hn::OddEvenBlocks(high13, hn::SwapAdjacentBlocks(high02));
#else
  static_cast<void>(v);  // one group
#endif
}
#endif

// Lane j of v[i] and lane i of v[j] change places.
HWY_INLINE void transpose(Vector (&v)[kLanes]) {
#if HWY_TARGET != HWY_SCALAR
  unrolled<kLanes / 4>([&](auto group) DCULAB_INLINE { transpose_fours(v + 4 * group); });
  unrolled<4>([&](auto i) DCULAB_INLINE { transpose_groups(v + i); });
#else
  static_cast<void>(v);
#endif
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
