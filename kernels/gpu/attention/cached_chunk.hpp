// The 16 bytes of K or V that a lane loads at once, and the numbers in them.
//
// F16 and both FP8 formats become pairs of halves, which hold every value of theirs exactly, so that two products take
// one instruction (dot2); BF16 becomes pairs of floats.
#pragma once

#include "kernels/gpu/numbers.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

using CachedChunk = Pack<std::uint32_t, 4>;

struct FloatPair {
  float low, high;
};

__device__ __forceinline__ float low_of(HalfPair pair) { return to_float(low_half(pair)); }
__device__ __forceinline__ float high_of(HalfPair pair) { return to_float(high_half(pair)); }
__device__ __forceinline__ float low_of(FloatPair pair) { return pair.low; }
__device__ __forceinline__ float high_of(FloatPair pair) { return pair.high; }

__device__ __forceinline__ float dot2(FloatPair a, FloatPair b, float sum) {
  return fused_multiply_add(a.high, b.high, fused_multiply_add(a.low, b.low, sum));
}

// Bytes 2 * index and 2 * index + 1 of a word, each the upper byte of a half.
__device__ __forceinline__ std::uint32_t spread_bytes(std::uint32_t word, int index) {
  return index == 0 ? (word & 0xFFU) << 8 | (word & 0xFF00U) << 16 : (word >> 8 & 0xFF00U) | (word & 0xFF000000U);
}

// How values of a cache of type T become numbers: pair(chunk, i) holds values 2 i and 2 i + 1.
template <typename T>
struct CachedNumbers;

template <>
struct CachedNumbers<Half> {
  using Pair = HalfPair;
  __device__ __forceinline__ static HalfPair pair(const CachedChunk& chunk, int i) { return {chunk[i]}; }
};

template <>
struct CachedNumbers<Bf16> {
  using Pair = FloatPair;
  __device__ __forceinline__ static FloatPair pair(const CachedChunk& chunk, int i) {
    return {__builtin_bit_cast(float, chunk[i] << 16), __builtin_bit_cast(float, chunk[i] & 0xFFFF0000U)};
  }
};

template <>
struct CachedNumbers<Fp8E5M2> {
  using Pair = HalfPair;
  __device__ __forceinline__ static HalfPair pair(const CachedChunk& chunk, int i) {
    return {spread_bytes(chunk[i / 2], i % 2)};
  }
};

// As to_float(Fp8E4M3): the bits without the sign, seven places up, are the half value / 2^8. Adding one to 0x7F, and
// to nothing else, reaches the sign's place; moved into the exponent's upper bit, it makes a NaN of the NaN.
template <>
struct CachedNumbers<Fp8E4M3> {
  using Pair = HalfPair;
  __device__ __forceinline__ static HalfPair pair(const CachedChunk& chunk, int i) {
    const std::uint32_t bytes = spread_bytes(chunk[i / 2], i % 2);
    const std::uint32_t magnitude = bytes & 0x7F007F00U;
    const std::uint32_t nan = (magnitude + 0x01000100U) & 0x80008000U;
    return HalfPair{(bytes & 0x80008000U) | (magnitude | nan) >> 1} * HalfPair{0x5C005C00U};  // 256, 256
  }
};

__device__ __forceinline__ void set_pair(HalfPair& pair, float low, float high) {
  pair = pair_of(from_float<Half>(low), from_float<Half>(high));
}
__device__ __forceinline__ void set_pair(FloatPair& pair, float low, float high) { pair = {low, high}; }

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
