// The grid of integers that weights are rounded to: a scale and a zero point, and how they follow from the weights.
//
//   q = clamp(round(w / scale) + zero, 0, 2^bits - 1)      w ~ scale * (q - zero)
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/quantized_matrix.hpp"

namespace dculab::engine {

enum class GridKind : std::uint8_t {
  symmetric,   // scale = 2 max|w| / (2^bits - 1), zero = 2^(bits - 1): GPTQ's
  absmax,      // scale = max|w| / (2^(bits - 1) - 1), zero = 2^(bits - 1): the lowest integer is not used
  asymmetric,  // scale = (max w - min w) / (2^bits - 1), zero = round(-min w / scale); 0 lies within the range
};

struct GridOptions {
  int bits = 4;
  GridKind kind = GridKind::symmetric;
  int lowest_zero = 0;  // asymmetric: 1 where the checkpoint's format cannot store 0
};

struct Grid {
  float scale = 1;  // a number that F16 holds
  int zero = 0;
};

// Throws InputError for weights that no F16 scale reaches, or that are not finite.
[[nodiscard]] Grid find_grid(std::span<const float> weights, const GridOptions& options);

[[nodiscard]] inline std::uint8_t to_integer(float weight, Grid grid, int bits) {
  // Clamped before the conversion: far outliers do not fit a long.
  const float levels = static_cast<float>((1 << bits) - 1);
  const float level = std::clamp(weight / grid.scale, -levels, levels);
  return static_cast<std::uint8_t>(std::clamp(static_cast<int>(std::lrint(level)) + grid.zero, 0, (1 << bits) - 1));
}

[[nodiscard]] inline float to_weight(std::uint8_t q, Grid grid) {
  return grid.scale * static_cast<float>(q - grid.zero);
}

// The weights that the integers stand for, [rows, columns].
[[nodiscard]] std::vector<float> dequantized(const kernels::QuantizedMatrix& matrix);

}  // namespace dculab::engine
