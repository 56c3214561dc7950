// The 16 bytes of K or V that a lane loads at once, and the numbers in them.
//
// F16 and both FP8 formats become pairs of halves, which hold every value of theirs exactly, so that two products take
// one instruction (dot2); BF16 becomes pairs of floats.
#pragma once

#include "kernels/gpu/numbers.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

using CachedChunk = Pack<std::uint32_t, 4>;

// How values of a cache of type T become numbers: pair(chunk, i) holds values 2 i and 2 i + 1, pair_of_word(word, i)
// those of one of its words. Here: FP8.
template <typename T>
struct CachedNumbers {
  using Pair = HalfPair;
  __device__ __forceinline__ static HalfPair pair_of_word(std::uint32_t word, int i) {
    return to_half_pair<T>(word >> (16 * i));
  }
  __device__ __forceinline__ static HalfPair pair(const CachedChunk& chunk, int i) {
    return pair_of_word(chunk[i / 2], i % 2);
  }
};

template <>
struct CachedNumbers<Half> {
  using Pair = HalfPair;
  __device__ __forceinline__ static HalfPair pair_of_word(std::uint32_t word, int /*i*/) { return {word}; }
  __device__ __forceinline__ static HalfPair pair(const CachedChunk& chunk, int i) { return {chunk[i]}; }
};

template <>
struct CachedNumbers<Bf16> {
  using Pair = FloatPair;
  __device__ __forceinline__ static FloatPair pair_of_word(std::uint32_t word, int /*i*/) {
    return {__builtin_bit_cast(float, word << 16), __builtin_bit_cast(float, word & 0xFFFF0000U)};
  }
  __device__ __forceinline__ static FloatPair pair(const CachedChunk& chunk, int i) {
    return pair_of_word(chunk[i], 0);
  }
};

__device__ __forceinline__ void set_pair(HalfPair& pair, float low, float high) {
  pair = pair_of(from_float<Half>(low), from_float<Half>(high));
}
__device__ __forceinline__ void set_pair(FloatPair& pair, float low, float high) { pair = {low, high}; }

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
