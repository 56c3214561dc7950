#include "engine/quantize/round_to_nearest.hpp"

namespace dculab::engine {

kernels::QuantizedMatrix make_quantized(const WeightMatrix& weights, const GridOptions& grid, int group_size) {
  kernels::QuantizedMatrix matrix;
  matrix.rows = weights.rows;
  matrix.columns = weights.columns;
  matrix.bits = grid.bits;
  matrix.group_size = group_size;
  const std::size_t grids = static_cast<std::size_t>(matrix.rows) * static_cast<std::size_t>(matrix.groups());
  matrix.q.resize(weights.values.size());
  matrix.scales.resize(grids);
  matrix.zeros.resize(grids);
  return matrix;
}

kernels::QuantizedMatrix round_to_nearest(const WeightMatrix& weights, const GridOptions& grid, int group_size) {
  kernels::QuantizedMatrix matrix = make_quantized(weights, grid, group_size);
  // Groups follow one another without a gap, rows too.
  const auto length = static_cast<std::size_t>(group_size);
  for (std::size_t group = 0; group < matrix.scales.size(); ++group) {
    const std::span<const float> values = weights.values.subspan(group * length, length);
    const Grid found = find_grid(values, grid);
    matrix.scales[group] = found.scale;
    matrix.zeros[group] = static_cast<std::uint8_t>(found.zero);
    for (std::size_t i = 0; i < length; ++i) matrix.q[group * length + i] = to_integer(values[i], found, grid.bits);
  }
  return matrix;
}

}  // namespace dculab::engine
