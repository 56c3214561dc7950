// How F16, BF16 and FP8 values turn into floats and back, one at a time, rounding to nearest even.
// Constexpr and free of library calls, so that a GPU compiler takes the same code.
#pragma once

#include <bit>
#include <cstdint>

namespace dculab::kernels {

[[nodiscard]] constexpr float f32_from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

[[nodiscard]] constexpr std::uint16_t bf16_from_f32(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);  // stay a NaN
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

[[nodiscard]] constexpr float f32_from_f16(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t magnitude = bits & 0x7FFFU;
  if (magnitude >= 0x7C00U) return std::bit_cast<float>(sign | 0x7F800000U | ((magnitude & 0x3FFU) << 13));
  if (magnitude < 0x400U) {  // subnormal: a multiple of 2^-24
    const float value = static_cast<float>(magnitude) * 0x1p-24F;
    return sign != 0 ? -value : value;
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000U));  // exponent bias 15 -> 127
}

[[nodiscard]] constexpr std::uint16_t f16_from_f32(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return static_cast<std::uint16_t>(sign | 0x7E00U);
  if (magnitude >= 0x47800000U) return static_cast<std::uint16_t>(sign | 0x7C00U);  // 2^16 and more
  if (magnitude < 0x38800000U) {                                                    // below 2^-14: subnormal
    // Adding 0.5, whose last bit is worth 2^-24, lets the FPU round.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000U));
  }
  const std::uint32_t rounded = magnitude + 0xFFFU + ((magnitude >> 13) & 1U);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13));
}

// FP8 as the Open Compute Project defines it (OCP 8-bit Floating Point Specification, revision 1.0). Bits: sign,
// exponent, mantissa. E4M3 ("e4m3fn") has no infinities, one NaN per sign (S.1111.111) and reaches 448; E5M2 is F16 cut
// to its upper byte and reaches 57344. AMD's "fnuz" formats of gfx940 are others.
struct Fp8Format {
  int mantissa_bits, bias;
  std::uint8_t largest_finite, nan;  // without the sign
};
inline constexpr Fp8Format kFp8E4m3{3, 7, 0x7E, 0x7F};
inline constexpr Fp8Format kFp8E5m2{2, 15, 0x7B, 0x7E};

[[nodiscard]] constexpr float f32_from_fp8_e5m2(std::uint8_t bits) {
  return f32_from_f16(static_cast<std::uint16_t>(bits << 8));
}

[[nodiscard]] constexpr float f32_from_fp8_e4m3(std::uint8_t bits) {
  const std::uint32_t sign = (bits & 0x80U) << 24;
  const std::uint32_t magnitude = bits & 0x7FU;
  if (magnitude == 0x7FU) return std::bit_cast<float>(sign | 0x7FC00000U);
  if (magnitude < 0x08U) {  // subnormal: a multiple of 2^-9
    const float value = static_cast<float>(magnitude) * 0x1p-9F;
    return sign != 0 ? -value : value;
  }
  return std::bit_cast<float>(sign | ((magnitude << 20) + 0x3C000000U));  // exponent bias 7 -> 127
}

// Rounds to nearest even. What is too large becomes the largest finite value, infinity too, as with CUDA's
// __NV_SATFINITE, which vLLM stores its KV cache with; NaN stays NaN. Signs are kept, that of zero and NaN included.
[[nodiscard]] constexpr std::uint8_t fp8_from_f32(Fp8Format format, float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 24) & 0x80U;
  std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return static_cast<std::uint8_t>(sign | format.nan);
  int dropped_bits = 23 - format.mantissa_bits;
  const int exponent = static_cast<int>(magnitude >> 23) - 127 + format.bias;
  if (exponent < 1) {  // subnormal: the leading 1 becomes explicit and moves right
    dropped_bits += 1 - exponent;
    if (dropped_bits > 24) return static_cast<std::uint8_t>(sign);  // below half of the smallest value
    magnitude = (magnitude & 0x7FFFFFU) | 0x800000U;
  } else {
    magnitude -= static_cast<std::uint32_t>(127 - format.bias) << 23;
  }
  const std::uint32_t last_kept = (magnitude >> dropped_bits) & 1U;
  const std::uint32_t rounded = (magnitude + (1U << (dropped_bits - 1)) - 1U + last_kept) >> dropped_bits;
  return static_cast<std::uint8_t>(sign | (rounded < format.largest_finite ? rounded : format.largest_finite));
}

[[nodiscard]] constexpr std::uint8_t fp8_e4m3_from_f32(float value) { return fp8_from_f32(kFp8E4m3, value); }
[[nodiscard]] constexpr std::uint8_t fp8_e5m2_from_f32(float value) { return fp8_from_f32(kFp8E5m2, value); }

}  // namespace dculab::kernels
