// Which instructions an op uses on a machine, and how fast they are.
//
// Values are multiplied in the activations' format if the machine multiplies it, else in the next wider one:
// fp8 and int8 and bf16 -> f16 (bf16 -> f32, whose range it needs) -> f32.
#pragma once

#include "core/dtype.hpp"
#include "core/units.hpp"
#include "lower/launch.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

struct MultiplyFormat {
  Dtype dtype = Dtype::f32;
  Peak peak;
};

[[nodiscard]] MultiplyFormat multiply_format(const Machine& machine, Dtype wanted);

// Of the vector units or the matrix cores.
[[nodiscard]] FlopsPerSecond highest_rate(const Peak& peak);

// Of the fastest instructions that do an op's arithmetic.
[[nodiscard]] FlopsPerSecond peak_of(const Machine& machine, const lower::Arithmetic& work);

// Vector instructions per value, in lanes: an FMA on F32 is one instruction and two FLOP.
[[nodiscard]] FlopsPerSecond vector_lanes(const Machine& machine);

// The same of pairs of 16 bits: four FLOP each. A100's half-precision pipe is twice as wide as its F32 pipe.
[[nodiscard]] FlopsPerSecond packed_lanes(const Machine& machine, const MultiplyFormat& format);

// Vector instructions that turn one stored value into one to be multiplied: 0 when nothing is to be done.
//   widening or narrowing a float     1
//   int8: convert, scale              2
//   int4: unpack, convert, scale      3; 4-bit floats the same, with a look-up
//   fp8: 1 where the machine knows fp8, else 4 (sign, exponent and mantissa moved by hand)
//   kvquant: 7 of V, 15.5 of K, which is rotated as it is read; the mean of both
// Counted from the instruction sequences of GPTQ (int4), vLLM's fp8 software conversion and our CPU kernel's loops as
// GCC 12 makes them for AVX-512 (kvquant); the share of the instruction rate that is reached is
// Reached::conversion_compute.
[[nodiscard]] double conversion_instructions(const Machine& machine, Dtype stored, Dtype multiplied);

}  // namespace dculab::sim
