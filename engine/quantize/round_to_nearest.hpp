// Rounds each weight to its grid: RTN, and with one grid per row of 8 bits absmax and zero-point quantization.
#pragma once

#include <span>

#include "engine/quantize/weight_grid.hpp"

namespace dculab::engine {

// A matrix [rows, columns] to quantize.
struct WeightMatrix {
  std::span<const float> values;
  int rows = 0;
  int columns = 0;
};

// An empty matrix of integers, with room for its grids. Precondition: group_size divides the columns.
[[nodiscard]] kernels::QuantizedMatrix make_quantized(const WeightMatrix& weights, const GridOptions& grid,
                                                      int group_size);

[[nodiscard]] kernels::QuantizedMatrix round_to_nearest(const WeightMatrix& weights, const GridOptions& grid,
                                                        int group_size);

}  // namespace dculab::engine
