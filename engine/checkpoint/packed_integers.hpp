// Integers of 2, 3, 4 or 8 bits in 32-bit words, as quantized checkpoints store them.
//
// Values follow one another in one little-endian stream of bits, so that with 3 bits 32 of them fill 3 words and some
// straddle two. Source: AutoGPTQ, nn_modules/qlinear/qlinear_cuda_old.py, pack().
#pragma once

#include <cstddef>
#include <cstdint>

namespace dculab::engine {

constexpr int kWordBits = 32;

// Value `index` of the stream whose words lie `stride` apart.
[[nodiscard]] inline std::uint8_t read_packed(const std::uint32_t* words, std::size_t stride, std::size_t index,
                                              int bits) {
  const std::size_t first_bit = index * static_cast<std::size_t>(bits);
  const std::uint32_t* word = words + first_bit / kWordBits * stride;
  const int shift = static_cast<int>(first_bit % kWordBits);
  std::uint32_t value = *word >> shift;
  if (shift + bits > kWordBits) value |= word[stride] << (kWordBits - shift);
  return static_cast<std::uint8_t>(value & ((1U << bits) - 1));
}

// Puts `value` < 2^bits there. The words are zero before the first value.
inline void write_packed(std::uint32_t* words, std::size_t stride, std::size_t index, int bits, std::uint8_t value) {
  const std::size_t first_bit = index * static_cast<std::size_t>(bits);
  std::uint32_t* word = words + first_bit / kWordBits * stride;
  const int shift = static_cast<int>(first_bit % kWordBits);
  *word |= std::uint32_t{value} << shift;
  if (shift + bits > kWordBits) word[stride] |= std::uint32_t{value} >> (kWordBits - shift);
}

}  // namespace dculab::engine
