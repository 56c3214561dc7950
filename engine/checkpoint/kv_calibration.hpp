// What text has shown of the K and V of a model: ranges of K's channels, and levels for codes of few bits.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "model/model_shape.hpp"

namespace dculab::engine {

inline constexpr std::array<int, 3> kCalibratedBits{4, 3, 2};  // those of kvquant4, kvquant3 and kvquant2

// What codes stand for, and which of them values get. Both ascend.
struct KvCodebook {
  std::vector<float> levels, bounds;  // [2^bits], [2^bits - 1]

  friend bool operator==(const KvCodebook&, const KvCodebook&) = default;
};

// Of K as it is before rotary embedding. Numbers: kernels/kv/kvquant.hpp.
struct KvLayerCalibration {
  std::vector<float> centres, half_ranges;                  // [kv_width]
  std::array<KvCodebook, kCalibratedBits.size()> k{}, v{};  // of each of kCalibratedBits

  // Over the channels, in magnitude; 0 where there are none.
  [[nodiscard]] float largest_centre() const;
  [[nodiscard]] float largest_half_range() const;

  friend bool operator==(const KvLayerCalibration&, const KvLayerCalibration&) = default;
};

struct KvCalibration {
  std::vector<KvLayerCalibration> layers;  // [num_hidden_layers]; empty where a layer has no K and V of its own
};

// Even levels and ranges from -4 to 4, for weights that are made up.
[[nodiscard]] std::shared_ptr<const KvCalibration> made_up_calibration(const ModelShape& model);

}  // namespace dculab::engine
