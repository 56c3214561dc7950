// Number formats inside kernels: bit patterns with conversions, so that one source serves compilers with and without
// half-precision types. gfx906 has packed half arithmetic, but no bf16 and no fp8: those are widened by hand.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/dtype.hpp"
#include "kernels/gpu/runtime.hpp"
#include "kernels/number_format.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

struct Half {
  std::uint16_t bits;
};
struct Bf16 {
  std::uint16_t bits;
};
struct Fp8E4M3 {
  std::uint8_t bits;
};
struct Fp8E5M2 {
  std::uint8_t bits;
};

// A code of an int8 KV cache: it stands for itself times a scale that its token and head have.
struct Int8 {
  std::int8_t code;
};

// Two halves in one register, the lower one first in memory.
struct alignas(4) HalfPair {
  std::uint32_t bits;
};

struct FloatPair {
  float low, high;
};

__device__ __forceinline__ float to_float(float value) { return value; }

__device__ __forceinline__ float to_float(Half value) {
#if DCULAB_GPU_HIP
  return static_cast<float>(__builtin_bit_cast(_Float16, value.bits));
#elif DCULAB_GPU_CUDA
  return __half2float(__ushort_as_half(value.bits));
#else
  return f32_from_f16(value.bits);
#endif
}

__device__ __forceinline__ float to_float(Bf16 value) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(value.bits) << 16);
}

__device__ __forceinline__ float to_float(Int8 value) { return value.code; }

// E5M2 is the upper byte of a half.
__device__ __forceinline__ Half to_half(Fp8E5M2 value) {
  return Half{static_cast<std::uint16_t>(static_cast<std::uint32_t>(value.bits) << 8)};
}
__device__ __forceinline__ float to_float(Fp8E5M2 value) { return to_float(to_half(value)); }

// E4M3 has the exponent bias 7, a half 15: the shifted bits stand for value / 2^8, subnormals included. 0x7F is NaN.
__device__ __forceinline__ float to_float(Fp8E4M3 value) {
  const std::uint32_t magnitude = value.bits & 0x7FU;
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x80U) << 8;
  if (magnitude == 0x7FU) return to_float(Half{static_cast<std::uint16_t>(sign | 0x7E00U)});
  return to_float(Half{static_cast<std::uint16_t>(sign | (magnitude << 7))}) * 256.0F;
}

template <typename T>
[[nodiscard]] __device__ __forceinline__ T from_float(float value);

template <>
[[nodiscard]] __device__ __forceinline__ float from_float<float>(float value) {
  return value;
}

template <>
[[nodiscard]] __device__ __forceinline__ Half from_float<Half>(float value) {
#if DCULAB_GPU_HIP
  return Half{__builtin_bit_cast(std::uint16_t, static_cast<_Float16>(value))};
#elif DCULAB_GPU_CUDA
  return Half{__half_as_ushort(__float2half_rn(value))};
#else
  return Half{f16_from_f32(value)};
#endif
}

template <>
[[nodiscard]] __device__ __forceinline__ Bf16 from_float<Bf16>(float value) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return Bf16{static_cast<std::uint16_t>((bits >> 16) | 0x40U)};
  return Bf16{static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16)};
}

// The bits of number_format.hpp, which uses integers only: no FMA and no flushed subnormals can change them.
template <>
[[nodiscard]] __device__ __forceinline__ Fp8E4M3 from_float<Fp8E4M3>(float value) {
  constexpr Fp8Format kFormat = kFp8E4m3;
  return Fp8E4M3{fp8_from_f32(kFormat, value)};
}

template <>
[[nodiscard]] __device__ __forceinline__ Fp8E5M2 from_float<Fp8E5M2>(float value) {
  constexpr Fp8Format kFormat = kFp8E5m2;
  return Fp8E5M2{fp8_from_f32(kFormat, value)};
}

__device__ __forceinline__ HalfPair pair_of(Half low, Half high) {
  return HalfPair{static_cast<std::uint32_t>(low.bits) | static_cast<std::uint32_t>(high.bits) << 16};
}
__device__ __forceinline__ Half low_half(HalfPair pair) { return Half{static_cast<std::uint16_t>(pair.bits)}; }
__device__ __forceinline__ Half high_half(HalfPair pair) { return Half{static_cast<std::uint16_t>(pair.bits >> 16)}; }
__device__ __forceinline__ FloatPair pair_of(float low, float high) { return {low, high}; }

__device__ __forceinline__ float low_of(HalfPair pair) { return to_float(low_half(pair)); }
__device__ __forceinline__ float high_of(HalfPair pair) { return to_float(high_half(pair)); }
__device__ __forceinline__ float low_of(FloatPair pair) { return pair.low; }
__device__ __forceinline__ float high_of(FloatPair pair) { return pair.high; }

#if DCULAB_GPU_CUDA
__device__ __forceinline__ __half2 as_half2(HalfPair pair) { return *reinterpret_cast<const __half2*>(&pair); }
__device__ __forceinline__ HalfPair of_half2(__half2 pair) { return *reinterpret_cast<const HalfPair*>(&pair); }
#endif

// Both halves at once, rounded to nearest even (gfx906: v_pk_add_f16, v_pk_mul_f16).
__device__ __forceinline__ HalfPair operator+(HalfPair a, HalfPair b) {
#if DCULAB_GPU_HIP
  using Pair = _Float16 __attribute__((ext_vector_type(2)));
  return HalfPair{
      __builtin_bit_cast(std::uint32_t, __builtin_bit_cast(Pair, a.bits) + __builtin_bit_cast(Pair, b.bits))};
#elif DCULAB_GPU_CUDA
  return of_half2(__hadd2(as_half2(a), as_half2(b)));
#else
  return pair_of(from_float<Half>(to_float(low_half(a)) + to_float(low_half(b))),
                 from_float<Half>(to_float(high_half(a)) + to_float(high_half(b))));
#endif
}
__device__ __forceinline__ HalfPair operator*(HalfPair a, HalfPair b) {
#if DCULAB_GPU_HIP
  using Pair = _Float16 __attribute__((ext_vector_type(2)));
  return HalfPair{
      __builtin_bit_cast(std::uint32_t, __builtin_bit_cast(Pair, a.bits) * __builtin_bit_cast(Pair, b.bits))};
#elif DCULAB_GPU_CUDA
  return of_half2(__hmul2(as_half2(a), as_half2(b)));
#else
  return pair_of(from_float<Half>(to_float(low_half(a)) * to_float(low_half(b))),
                 from_float<Half>(to_float(high_half(a)) * to_float(high_half(b))));
#endif
}

// Two FP8 or int8 values, in the lower 16 bits, as halves: exact.
template <typename T>
[[nodiscard]] __device__ __forceinline__ HalfPair to_half_pair(std::uint32_t bits);

template <>
[[nodiscard]] __device__ __forceinline__ HalfPair to_half_pair<Fp8E5M2>(std::uint32_t bits) {
  return HalfPair{(bits & 0xFFU) << 8 | (bits & 0xFF00U) << 16};
}

// As to_float(Fp8E4M3), for both at once: the bits without the sign, seven places up, are the half value / 2^8. Adding
// one to 0x7F, and to nothing else, reaches the sign's place; moved into the exponent's upper bit, it makes a NaN of
// it.
template <>
[[nodiscard]] __device__ __forceinline__ HalfPair to_half_pair<Fp8E4M3>(std::uint32_t bits) {
  const std::uint32_t upper = to_half_pair<Fp8E5M2>(bits).bits, magnitudes = upper & 0x7F007F00U;
  const std::uint32_t nan = (magnitudes + 0x01000100U) & 0x80008000U;
  return HalfPair{(upper & 0x80008000U) | (magnitudes | nan) >> 1} * HalfPair{0x5C005C00U};  // 256, 256
}

// Codes + 128 are the lowest bits of halves from 1024 on: less 1152 they are the codes, exactly.
template <>
[[nodiscard]] __device__ __forceinline__ HalfPair to_half_pair<Int8>(std::uint32_t bits) {
  const std::uint32_t shifted = bits ^ 0x8080U;
  return HalfPair{(shifted & 0xFFU) | (shifted & 0xFF00U) << 8 | 0x64006400U} + HalfPair{0xE480E480U};
}

// sum + a.x * b.x + a.y * b.y, products and sum in f32 (gfx906: v_dot2_f32_f16).
__device__ __forceinline__ float dot2(HalfPair a, HalfPair b, float sum) {
#if DCULAB_GPU_HIP
  using Pair = _Float16 __attribute__((ext_vector_type(2)));
  return __builtin_amdgcn_fdot2(__builtin_bit_cast(Pair, a.bits), __builtin_bit_cast(Pair, b.bits), sum, false);
#else
  sum = fused_multiply_add(to_float(low_half(a)), to_float(low_half(b)), sum);
  return fused_multiply_add(to_float(high_half(a)), to_float(high_half(b)), sum);
#endif
}
__device__ __forceinline__ float dot2(FloatPair a, FloatPair b, float sum) {
  return fused_multiply_add(a.high, b.high, fused_multiply_add(a.low, b.low, sum));
}

// Reads value `index` of a tensor whose format is known at run time (f32, f16 or bf16).
__device__ __forceinline__ float load_number(const void* data, Dtype dtype, std::int64_t index) {
  if (dtype == Dtype::f32) return load(static_cast<const float*>(data) + index);
  if (dtype == Dtype::f16) return to_float(load(static_cast<const Half*>(data) + index));
  return to_float(load(static_cast<const Bf16*>(data) + index));
}

// Writes it (f32 or f16).
__device__ __forceinline__ void store_number(void* data, Dtype dtype, std::int64_t index, float value) {
  if (dtype == Dtype::f32)
    store(static_cast<float*>(data) + index, value);
  else
    store(static_cast<Half*>(data) + index, from_float<Half>(value));
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
