// Number formats inside kernels: bit patterns with conversions, so that one source serves compilers with and without
// half-precision types. gfx906 has packed half arithmetic, but no bf16 and no fp8: those are widened by hand.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

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

// Two halves in one register, the lower one first in memory.
struct alignas(4) HalfPair {
  std::uint32_t bits;
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

// sum + a.x * b.x + a.y * b.y, products and sum in f32 (gfx906: v_dot2_f32_f16).
__device__ __forceinline__ float dot2(HalfPair a, HalfPair b, float sum) {
#if DCULAB_GPU_HIP
  using Pair = _Float16 __attribute__((ext_vector_type(2)));
  return __builtin_amdgcn_fdot2(__builtin_bit_cast(Pair, a.bits), __builtin_bit_cast(Pair, b.bits), sum, false);
#else
  const auto low = [](HalfPair pair) { return to_float(Half{static_cast<std::uint16_t>(pair.bits & 0xFFFFU)}); };
  const auto high = [](HalfPair pair) { return to_float(Half{static_cast<std::uint16_t>(pair.bits >> 16)}); };
  return fused_multiply_add(high(a), high(b), fused_multiply_add(low(a), low(b), sum));
#endif
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
