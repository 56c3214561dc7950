// What the matmul kernels multiply: 4-byte words along k, each one float, two halves or four int8 values.
//
// Halves stay halves only where both operands are, or are FP8, whose values are halves too: bf16 has a range that
// halves have not, so it is widened to float.
#pragma once

#include <type_traits>

#include "kernels/gpu/numbers.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

struct alignas(4) Int8Quad {
  std::uint32_t bits;
};

// sum + the products of four signed bytes of a and b.
__device__ __forceinline__ std::int32_t dot4(std::uint32_t a, std::uint32_t b, std::int32_t sum) {
#if DCULAB_GPU_HIP
  return __builtin_amdgcn_sdot4(static_cast<std::int32_t>(a), static_cast<std::int32_t>(b), sum, false);
#elif DCULAB_GPU_CUDA
  return __dp4a(static_cast<std::int32_t>(a), static_cast<std::int32_t>(b), sum);
#else
  for (int shift = 0; shift < 32; shift += 8)
    sum += static_cast<std::int8_t>(a >> shift) * static_cast<std::int8_t>(b >> shift);
  return sum;
#endif
}

template <typename X, typename W>
using WordOf = std::conditional_t<std::is_same_v<X, Half> && (std::is_same_v<W, Half> || std::is_same_v<W, Fp8E4M3>),
                                  HalfPair, std::conditional_t<std::is_same_v<X, std::int8_t>, Int8Quad, float>>;

// What products of words are summed in.
template <typename Word>
using SumOf = std::conditional_t<std::is_same_v<Word, Int8Quad>, std::int32_t, float>;

template <typename Word>
inline constexpr int kWordValues = std::is_same_v<Word, HalfPair>   ? 2
                                   : std::is_same_v<Word, Int8Quad> ? 4
                                                                    : 1;

__device__ __forceinline__ float multiply_add(float a, float b, float sum) { return fused_multiply_add(a, b, sum); }
__device__ __forceinline__ float multiply_add(HalfPair a, HalfPair b, float sum) { return dot2(a, b, sum); }
__device__ __forceinline__ std::int32_t multiply_add(Int8Quad a, Int8Quad b, std::int32_t sum) {
  return dot4(a.bits, b.bits, sum);
}

// What slabs of a GEMM hold: FP8 weights times their scales, in floats.
template <typename X, typename W>
using SlabWordOf = std::conditional_t<std::is_same_v<W, Fp8E4M3>, float, WordOf<X, W>>;

// Values of a row that a lane loads at a time: 16 bytes; of FP8 8, which divide rows as they do those of other formats.
template <typename T>
inline constexpr int kPieceValues = sizeof(T) == 1 && !std::is_same_v<T, std::int8_t> ? 8 : 16 / sizeof(T);

// Neighbouring values of a row, as they lie in memory; element i is the i-th word of them.
template <typename T, typename Word, int kCount = kPieceValues<T>>
struct Piece {
  static constexpr int kValues = kCount;
  static constexpr int kWords = kCount / kWordValues<Word>;
  static constexpr bool kIsWords = sizeof(T) * kWordValues<Word> == sizeof(Word);
  using Unit = std::conditional_t<kIsWords, Word, T>;

  Pack<Unit, kCount * sizeof(T) / sizeof(Unit)> units;

  __device__ __forceinline__ Word operator[](int i) const {
    if constexpr (kIsWords)
      return units[i];
    else
      return to_float(units[i]);
  }
};

template <typename Word, int kCount>
struct Piece<Fp8E4M3, Word, kCount> {
  static constexpr int kValues = kCount;
  static constexpr int kWords = kCount / kWordValues<Word>;

  Pack<std::uint32_t, kCount / 4> units;

  __device__ __forceinline__ Word operator[](int i) const {
    if constexpr (std::is_same_v<Word, HalfPair>)
      return to_half_pair<Fp8E4M3>(units[i / 2] >> (16 * (i % 2)));
    else
      return to_float(Fp8E4M3{static_cast<std::uint8_t>(units[i / 4] >> (8 * (i % 4)))});
  }
};

// From `bytes` behind `data` on. Offsets of 32 bits from an address that all lanes share leave registers free.
template <typename T, typename Word, int kCount, typename Offset>
__device__ __forceinline__ void load_piece(Piece<T, Word, kCount>& piece, const T* data, Offset bytes) {
  piece.units = load(reinterpret_cast<const decltype(piece.units)*>(reinterpret_cast<const char*>(data) + bytes));
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
