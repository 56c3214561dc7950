// How many operations per second does this core do on numbers that are already at hand, per way of multiplying?
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/dtype.hpp"

namespace dculab::kernels::cpu {

// What is multiplied, and how. Weights that are not F32 are loaded from L1 in their stored format.
enum class Arithmetic : std::uint8_t {
  f32_fma,       // F32 multiply-add from registers
  f16_fma,       // every F16 weight vector widened to F32 for one multiply-add: a matrix times a vector
  f16_tile_fma,  // ... for four multiply-adds: a matrix times a few vectors
  bf16_fma,      // the same two with BF16
  bf16_tile_fma,
  bf16_dot,  // pairs of BF16 to an F32 sum, as kernels/cpu/matmul_terms-inl.hpp does on this CPU
  int8_dot,  // int8 widened to int16, pairs to an int32 sum: Highway's ReorderWidenMulAccumulate
  byte_dot,  // four products of bytes to an int32 sum, as kernels/cpu/dot4-inl.hpp does on this CPU
};

inline constexpr std::array kArithmetics{Arithmetic::f32_fma,  Arithmetic::f16_fma,       Arithmetic::f16_tile_fma,
                                         Arithmetic::bf16_fma, Arithmetic::bf16_tile_fma, Arithmetic::bf16_dot,
                                         Arithmetic::int8_dot, Arithmetic::byte_dot};

struct ArithmeticDescription {
  std::string_view name;  // as the enumerator
  Dtype stored;           // format of the weights
  std::string_view how;   // one line for reports
};

[[nodiscard]] ArithmeticDescription describe(Arithmetic arithmetic);

// Does `rounds` rounds of independent multiply-adds; returns the FLOP done (2 per multiply-add; for int8,
// integer operations).
[[nodiscard]] FlopCount run_arithmetic(Arithmetic arithmetic, std::int64_t rounds);

// The vector instructions in use, as Highway names them: "AVX3", "AVX2", ...
[[nodiscard]] std::string_view arithmetic_target();

}  // namespace dculab::kernels::cpu
