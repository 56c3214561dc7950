// Activations as the products with packed weights take them: in the order of the groups, rounded to 8 bits if asked.
#if defined(DCULAB_KERNELS_CPU_QUANTIZED_ACTIVATIONS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_QUANTIZED_ACTIVATIONS_INL_HPP_
#undef DCULAB_KERNELS_CPU_QUANTIZED_ACTIVATIONS_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_QUANTIZED_ACTIVATIONS_INL_HPP_
#endif

#include <limits>

#include "kernels/cpu/vectors-inl.hpp"
#include "kernels/quantized_matrix.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

// x[m, k] rounded to 8 bits in blocks of activation_group_size: values * scales.
struct QuantizedActivations {
  std::int8_t* values = nullptr;  // [m, k]
  float* scales = nullptr;        // [m, k / block]; NaN where x is not finite
  float* sums = nullptr;          // [m, k / block] of the values
  int k = 0, block = 0;

  [[nodiscard]] HWY_INLINE const std::int8_t* row(int token) const { return values + std::ptrdiff_t{token} * k; }
  [[nodiscard]] HWY_INLINE std::ptrdiff_t block_index(int token, int begin) const {
    return std::ptrdiff_t{token} * (k / block) + begin / block;
  }
};

// The largest |x|; NaN if there is one, since its bits are larger than those of numbers.
HWY_INLINE float largest_size(const float* x, int count) {
  const hn::RebindToSigned<F32> bits;
  auto largest = hn::Zero(bits);
  for (int i = 0; i < count; i += kLanes) {
    largest = hn::Max(largest, hn::BitCast(bits, hn::Abs(load_first(x + i, count - i))));
  }
  return std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(bits, largest)));
}

// One block of at most 128 values, a multiple of 8. Returns their sum.
HWY_INLINE std::int32_t round_block(const float* x, int count, float inverse, std::int8_t* values) {
  const hn::RebindToSigned<F32> i32;
  const hn::Rebind<std::int8_t, F32> i8;
  auto sum = hn::Zero(i32);
  for (int i = 0; i < count; i += kLanes) {
    const auto rounded = hn::NearestInt(hn::Mul(load_first(x + i, count - i), hn::Set(F32(), inverse)));
    sum = hn::Add(sum, rounded);
    const auto bytes = hn::DemoteTo(i8, rounded);
    if (i + kLanes <= count) {
      hn::StoreU(bytes, i8, values + i);
    } else {
      std::int8_t lanes[kLanes];
      hn::StoreU(bytes, i8, lanes);
      std::memcpy(values + i, lanes, static_cast<std::size_t>(count - i));
    }
  }
  return hn::GetLane(hn::SumOfLanes(i32, sum));
}

// Activations of one token. `permutation`: see WeightView, or null.
inline void quantize_token(const float* x, const std::int32_t* permutation, int token, const QuantizedActivations& to) {
  constexpr int kMostValues = 128;
  float gathered[kMostValues];
  for (int begin = 0; begin < to.k; begin += to.block) {
    const float* from = x + begin;
    if (permutation != nullptr) {
      for (int i = 0; i < to.block; ++i) gathered[i] = x[permutation[begin + i]];
      from = gathered;
    }
    std::int8_t* values = to.values + std::ptrdiff_t{token} * to.k + begin;
    const std::ptrdiff_t block = to.block_index(token, begin);
    const float largest = largest_size(from, to.block);
    if (largest >= kSmallestActivation && largest <= std::numeric_limits<float>::max()) {
      to.sums[block] = static_cast<float>(round_block(from, to.block, 127.0F / largest, values));
      to.scales[block] = largest / 127.0F;
    } else {
      std::memset(values, 0, static_cast<std::size_t>(to.block));
      to.sums[block] = 0.0F;
      to.scales[block] = largest < kSmallestActivation ? 0.0F : std::numeric_limits<float>::quiet_NaN();
    }
  }
}

inline void gather_token(const float* x, const std::int32_t* permutation, int k, float* to) {
  for (int i = 0; i < k; ++i) to[i] = x[permutation[i]];
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
