// Rows of a matrix as they are stored, read as vectors of floats: plain values, or FP8 with its scales.
#if defined(DCULAB_KERNELS_CPU_WEIGHT_ROWS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_WEIGHT_ROWS_INL_HPP_
#undef DCULAB_KERNELS_CPU_WEIGHT_ROWS_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_WEIGHT_ROWS_INL_HPP_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cpu/fp8_values-inl.hpp"
#include "kernels/ops.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

template <typename T>
struct PlainRow {
  using Stored = T;
  const T* values;

  [[nodiscard]] HWY_INLINE Vector load_at(std::ptrdiff_t i) const { return load(values + i); }
  [[nodiscard]] HWY_INLINE Vector load_first_at(std::ptrdiff_t i, int count) const {
    return load_first(values + i, count);
  }
};

#if HWY_TARGET <= HWY_AVX2
// E4M3 as F16 that is 2^8 smaller: exponent and mantissa lie 7 bits lower there, and subnormals are subnormals. Of the
// sign, which fills the upper bits, bit 15 stays.
template <class D16>
HWY_INLINE hn::Vec<D16> f16_bits(D16 d, const Fp8E4m3* from) {
  const hn::Rebind<std::int8_t, D16> d8;
  const auto bytes = hn::PromoteTo(d, hn::LoadU(d8, reinterpret_cast<const std::int8_t*>(from)));
  return hn::And(hn::ShiftLeft<7>(bytes), hn::Set(d, static_cast<std::int16_t>(0xBF80)));
}

// Numbers, of which there are kLanes; a NaN is read as 480.
HWY_INLINE Vector load_weights(const Fp8E4m3* from) {
  const hn::Rebind<std::int16_t, F32> d;
  return from_f16_bits(hn::BitCast(Words16(), f16_bits(d, from)));
}

// Twice as many. Vectors of 16 bits hold them all, which leaves 10 instructions of 12.
HWY_INLINE void load_weights(const Fp8E4m3* from, Vector& first, Vector& second) {
  const hn::Repartition<std::int16_t, F32> d;
  const hn::Half<decltype(d)> half;
  const auto bits = f16_bits(d, from);
  first = from_f16_bits(hn::BitCast(Words16(), hn::LowerHalf(half, bits)));
  second = from_f16_bits(hn::BitCast(Words16(), hn::UpperHalf(half, bits)));
}
#else
HWY_INLINE Vector load_weights(const Fp8E4m3* from) { return load(from); }  // also 2^8 smaller
HWY_INLINE void load_weights(const Fp8E4m3* from, Vector& first, Vector& second) {
  first = load(from), second = load(from + kLanes);
}
#endif

// Without its scale, and 2^8 smaller.
struct Fp8Row {
  using Stored = Fp8E4m3;
  const Fp8E4m3* values;
  const float* scales;  // of its blocks of columns, times 2^8

  [[nodiscard]] HWY_INLINE Vector load_at(std::ptrdiff_t i) const { return load_weights(values + i); }
  [[nodiscard]] HWY_INLINE Vector load_first_at(std::ptrdiff_t i, int count) const {
    if (count >= kLanes) return load_at(i);
    Fp8E4m3 lanes[kLanes] = {};
    std::memcpy(lanes, values + i, static_cast<std::size_t>(count));
    return load_weights(lanes);
  }
};

template <class Row>
constexpr bool kHasScales = std::is_same_v<Row, Fp8Row>;

// [rows, columns]
template <typename T>
struct PlainMatrix {
  using Row = PlainRow<T>;
  const T* values;
  int columns;

  [[nodiscard]] HWY_INLINE Row row(std::ptrdiff_t index) const { return {values + index * columns}; }
};

struct Fp8Matrix {
  using Row = Fp8Row;
  const Fp8E4m3* values;
  int columns;
  Fp8Scales scales;

  [[nodiscard]] HWY_INLINE Row row(std::ptrdiff_t index) const {
    return {values + index * columns, scales.of_row(static_cast<int>(index))};
  }
};

// Calls body(begin, end, block) for the parts of in-features [begin, end) that have one scale, which is added up first.
template <typename Body>
HWY_INLINE void for_each_scale(int begin, int end, int column_shift, Body&& body) {
  while (begin < end) {
    const int block = begin >> column_shift;
    const int next = static_cast<int>(std::min<std::int64_t>(end, (std::int64_t{block} + 1) << column_shift));
    body(begin, next, block);
    begin = next;
  }
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
