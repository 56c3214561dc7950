#include "engine/calibration/kv_ranges.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.hpp"

namespace dculab::engine {
namespace {

constexpr float kLargestE4m3 = 448, kRoom = 2;

void widen_range(float& range, std::span<const float> values) {
  for (const float value : values) range = std::isnan(value) ? value : std::max(range, std::fabs(value));
}

// `rows`: [tokens, projected_width], Q, K and V of each.
void add_rows(KvRange& range, const Gqa& attention, std::span<const float> rows) {
  const auto stride = static_cast<std::size_t>(attention.projected_width());
  const auto queries = static_cast<std::size_t>(attention.heads.query_width());
  const auto width = static_cast<std::size_t>(attention.heads.kv_width());
  for (std::size_t row = 0; row < rows.size(); row += stride) {
    widen_range(range.k, rows.subspan(row + queries, width));
    widen_range(range.v, rows.subspan(row + queries + width, width));
  }
}

}  // namespace

std::vector<KvRange> observe_kv_ranges(const ModelWeights& weights, std::span<const TokenId> tokens,
                                       const TextRun& run) {
  const ModelShape& shape = weights.shape;
  if (!std::ranges::all_of(shape.kinds, &LayerKind::has_kv_heads))
    throw InputError("scales of a KV cache are calibrated for keys and values, and " + shape.name +
                     " has layers that cache none");
  std::vector<KvRange> ranges(weights.layers.size());
  observe_text(weights, tokens, run, [&](const Op& op, int layer, std::span<const float> input) {
    if (op.kind == OpKind::attention_prefill && shape.kv_source(layer) == layer)
      add_rows(ranges[static_cast<std::size_t>(layer)], shape.layer(layer).gqa(), input);
  });
  for (std::size_t layer = 0; layer < ranges.size(); ++layer) {
    ranges[layer] = ranges[static_cast<std::size_t>(shape.kv_source(static_cast<int>(layer)))];
    if (!std::isfinite(ranges[layer].k) || !std::isfinite(ranges[layer].v))
      throw InputError("the calibration text makes the keys or values of layer " + std::to_string(layer) +
                       " NaN or infinite; the weights are damaged");
  }
  return ranges;
}

std::vector<kernels::Fp8KvScales> e4m3_scales(std::span<const KvRange> ranges) {
  const auto scale = [](float range) { return range == 0 ? 1.0F : range * kRoom / kLargestE4m3; };
  std::vector<kernels::Fp8KvScales> scales;
  for (const KvRange& range : ranges) scales.push_back({scale(range.k), scale(range.v)});
  return scales;
}

}  // namespace dculab::engine
