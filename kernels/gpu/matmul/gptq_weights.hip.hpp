// GPTQ int4 weights in registers: from packed words to pairs of numbers, activations in the order of those pairs, and
// where the sums go.
//
// A word holds eight in-features of one column, lowest nibble first. Its pairs are (0, 4), (1, 5), (2, 6), (3, 7):
// `word >> 4 j & 0x000F000F` has both nibbles of pair j where halves have their lowest bits. With 0x6400 above them the
// halves are 1024 + q, exactly, and adding -(1024 + zero) leaves q - zero, exactly.
#pragma once

#include "kernels/gpu/args.hpp"
#include "kernels/gpu/matmul/bias.hpp"
#include "kernels/gpu/numbers.hpp"
#include "lower/dculab_gpu/gptq_plan.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

template <typename T>
struct PairType;
template <>
struct PairType<Half> {
  using Pair = HalfPair;
};
template <>
struct PairType<float> {
  using Pair = FloatPair;
};
template <typename T>
using PairOf = typename PairType<T>::Pair;

__device__ __forceinline__ float dot2(HalfPair a, FloatPair b, float sum) {
  return dot2(FloatPair{low_of(a), high_of(a)}, b, sum);
}

// Eight in-features of a row of x, in the order of a word's pairs.
template <typename T>
struct alignas(16) Eight {
  PairOf<T> pairs[4];
};

// In-features k to k + 7 of a row of x.
__device__ __forceinline__ Eight<Half> load_eight(const Half* row, int k) {
  const auto words = load(reinterpret_cast<const Pack<HalfPair, 4>*>(row + k));
  return {{pair_of(low_half(words[0]), low_half(words[2])), pair_of(high_half(words[0]), high_half(words[2])),
           pair_of(low_half(words[1]), low_half(words[3])), pair_of(high_half(words[1]), high_half(words[3]))}};
}
__device__ __forceinline__ Eight<float> load_eight(const float* row, int k) {
  const auto low = load(reinterpret_cast<const Pack<float, 4>*>(row + k));
  const auto high = load(reinterpret_cast<const Pack<float, 4>*>(row + k + 4));
  return {{{low[0], high[0]}, {low[1], high[1]}, {low[2], high[2]}, {low[3], high[3]}}};
}

// The in-features of rows k to k + 7 of qweight.
template <typename T>
__device__ __forceinline__ Eight<T> load_eight(const T* row, int k, const std::int32_t* x_perm) {
  if (x_perm == nullptr) return load_eight(row, k);
  const auto low = load(reinterpret_cast<const Pack<std::int32_t, 4>*>(x_perm + k));
  const auto high = load(reinterpret_cast<const Pack<std::int32_t, 4>*>(x_perm + k + 4));
  Eight<T> eight;
  DCULAB_UNROLL
  for (int j = 0; j < 4; ++j) eight.pairs[j] = pair_of(load(row + low[j]), load(row + high[j]));
  return eight;
}

// 1024 + q of pair j.
__device__ __forceinline__ HalfPair biased_pair(std::uint32_t word, int j) {
  return HalfPair{((word >> (4 * j)) & 0x000F000FU) | 0x64006400U};
}

// What four neighbouring columns share within a group, as stored: whatever is computed from it waits for the loads, so
// it is computed where it is used. A column beyond the matrix has scale 0.
struct GptqGroup {
  Pack<HalfPair, 2> scales{};
  std::uint32_t zeros = 0;  // of eight columns

  [[nodiscard]] __device__ __forceinline__ Half scale(int i) const {
    return i % 2 == 0 ? low_half(scales[i / 2]) : high_half(scales[i / 2]);
  }
  // -(1024 + zero) of column `column` + i, twice. 0xE400 is -1024, whose last bit is worth 1.
  [[nodiscard]] __device__ __forceinline__ HalfPair minus_zero(int column, int i, int zero_offset) const {
    const std::uint32_t zero = (zeros >> (4 * (column % 8 + i))) & 0xFU;
    return HalfPair{(0xE400U + zero + static_cast<std::uint32_t>(zero_offset)) * 0x00010001U};
  }
};

// group_shift: in-feature k is of group k >> group_shift.
__device__ __forceinline__ GptqGroup load_group(const GptqWeightView& weight, int k, int column, int group_shift) {
  const std::int64_t row = k >> group_shift;
  const std::uint16_t* scales = weight.scales + row * weight.out_features + column;
  const std::uint32_t* zeros = weight.qzeros + row * (weight.out_features / 8) + column / 8;
  return {load(reinterpret_cast<const Pack<HalfPair, 2>*>(scales)), load(zeros)};
}

// Eight in-features of four columns.
__device__ __forceinline__ Pack<std::uint32_t, 4> load_words(const GptqWeightView& weight, int k, int column) {
  const std::int64_t index = static_cast<std::int64_t>(k >> 3) * weight.out_features + column;
  return load(reinterpret_cast<const Pack<std::uint32_t, 4>*>(weight.qweight + index));
}

// Part p of the sum has in-features p * k_per_part and up. In-feature k is of group k >> group_shift.
struct GptqDivision {
  int k_per_part = 0;
  int group_shift = 0;
};

// The workspace, where there is one, takes the parts of the sum, [parts, m, n]; otherwise y takes the only one.
__device__ __forceinline__ void store_sum(const GptqMatmul& args, int part, int row, int column, float sum) {
  const int n = args.weight.out_features;
  if (row >= args.m || column >= n) return;
  if (args.workspace != nullptr)
    store(args.workspace + (static_cast<std::int64_t>(part) * args.m + row) * n + column, sum);
  else
    store_number(args.y.data, args.y.dtype, static_cast<std::int64_t>(row) * args.y_stride + column,
                 sum + bias_of(args.bias, column));
}

__device__ __forceinline__ int end_of_part(const GptqMatmul& args, const GptqDivision& division, int part) {
  const std::int64_t end = (part + std::int64_t{1}) * division.k_per_part;
  return end < args.weight.in_features ? static_cast<int>(end) : args.weight.in_features;
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
