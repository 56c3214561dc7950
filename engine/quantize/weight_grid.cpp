#include "engine/quantize/weight_grid.hpp"

#include "core/error.hpp"
#include "kernels/number_format.hpp"

namespace dculab::engine {
namespace {

constexpr float kSmallestScale = 0x1p-24F;  // of F16

struct Range {
  float lowest = 0, highest = 0;  // 0 included: a weight of 0 stays 0
};

[[nodiscard]] Range range_of(std::span<const float> weights) {
  Range range;
  for (const float weight : weights) {
    if (!std::isfinite(weight)) throw InputError("a weight is not finite; the checkpoint is damaged");
    range.lowest = std::min(range.lowest, weight);
    range.highest = std::max(range.highest, weight);
  }
  if (range.lowest == 0 && range.highest == 0) return {-1, 1};  // any grid will do
  return range;
}

[[nodiscard]] float f16_scale(float scale) {
  const float rounded = kernels::f32_from_f16(kernels::f16_from_f32(scale));
  if (!std::isfinite(rounded)) throw InputError("a weight is too large for a scale in F16");
  return std::max(rounded, kSmallestScale);
}

}  // namespace

Grid find_grid(std::span<const float> weights, const GridOptions& options) {
  const Range range = range_of(weights);
  const int levels = (1 << options.bits) - 1;
  const int middle = 1 << (options.bits - 1);
  const float bound = std::max(-range.lowest, range.highest);
  if (options.kind == GridKind::symmetric) return {f16_scale(2 * bound / static_cast<float>(levels)), middle};
  if (options.kind == GridKind::absmax) return {f16_scale(bound / static_cast<float>(middle - 1)), middle};
  const float scale = f16_scale((range.highest - range.lowest) / static_cast<float>(levels));
  const int zero = std::clamp(static_cast<int>(std::lrint(-range.lowest / scale)), 0, levels);
  if (zero >= options.lowest_zero) return {scale, zero};
  return {f16_scale(range.highest / static_cast<float>(levels - options.lowest_zero)), options.lowest_zero};
}

std::vector<float> dequantized(const kernels::QuantizedMatrix& matrix) {
  const auto columns = static_cast<std::size_t>(matrix.columns);
  const auto groups = static_cast<std::size_t>(matrix.groups());
  std::vector<float> weights(static_cast<std::size_t>(matrix.rows) * columns);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::size_t group =
        i / columns * groups + static_cast<std::size_t>(matrix.group(static_cast<int>(i % columns)));
    weights[i] = to_weight(matrix.q[i], {matrix.scales[group], matrix.zeros[group]});
  }
  return weights;
}

}  // namespace dculab::engine
