#include "engine/checkpoint/kv_calibration.hpp"

#include <algorithm>
#include <cmath>

namespace dculab::engine {

float KvLayerCalibration::largest_centre() const {
  const auto largest = std::ranges::max_element(centres, {}, [](float value) { return std::abs(value); });
  return largest == centres.end() ? 0.0F : std::abs(*largest);
}

float KvLayerCalibration::largest_half_range() const {
  return half_ranges.empty() ? 0.0F : std::ranges::max(half_ranges);
}

std::shared_ptr<const KvCalibration> made_up_calibration(const ModelShape& model) {
  constexpr float kHalfRange = 4.0F;
  auto calibration = std::make_shared<KvCalibration>();
  for (int index = 0; index < model.num_layers(); ++index) {
    KvLayerCalibration& layer = calibration->layers.emplace_back();
    const LayerKind& kind = model.layer(index);
    if (!kind.has_kv_heads() || kind.gqa().shares_kv) continue;
    const auto width = static_cast<std::size_t>(kind.gqa().heads.kv_width());
    layer.centres.assign(width, 0.0F);
    layer.half_ranges.assign(width, kHalfRange);
    for (std::size_t i = 0; i < kCalibratedBits.size(); ++i) {
      const int last = (1 << kCalibratedBits[i]) - 1;
      const auto place = [last](float level) { return 2 * level / static_cast<float>(last) - 1; };
      for (int level = 0; level <= last; ++level) layer.k[i].levels.push_back(place(static_cast<float>(level)));
      for (int level = 0; level < last; ++level) layer.k[i].bounds.push_back(place(static_cast<float>(level) + 0.5F));
      layer.v[i] = layer.k[i];
    }
  }
  return calibration;
}

}  // namespace dculab::engine
