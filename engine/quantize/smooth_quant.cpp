#include "engine/quantize/smooth_quant.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "engine/checkpoint/stored_values.hpp"

namespace dculab::engine {
namespace {

[[nodiscard]] float rounded_to(Dtype dtype, float value) {
  std::array<std::byte, sizeof(float)> stored{};
  float back = 0;
  narrow(std::span(&value, 1), dtype, stored.data());
  widen(stored.data(), dtype, std::span(&back, 1));
  return back;
}

[[nodiscard]] std::vector<float> largest_of_columns(std::span<const WeightMatrix> weights, std::size_t columns) {
  std::vector<float> largest(columns);
  for (const WeightMatrix& matrix : weights)
    for (std::size_t i = 0; i < matrix.values.size(); ++i)
      largest[i % columns] = std::max(largest[i % columns], std::abs(matrix.values[i]));
  return largest;
}

}  // namespace

std::vector<float> smoothing_scales(std::span<const float> largest_activations, std::span<const WeightMatrix> weights,
                                    std::span<const float> norm, Dtype norm_dtype, double alpha) {
  const std::vector<float> largest_weights = largest_of_columns(weights, norm.size());
  std::vector<float> scales(norm.size(), 1.0F);
  for (std::size_t j = 0; j < scales.size(); ++j) {
    if (largest_activations[j] == 0 || largest_weights[j] == 0 || norm[j] == 0) continue;
    const double wanted = std::pow(static_cast<double>(largest_activations[j]), alpha) /
                          std::pow(static_cast<double>(largest_weights[j]), 1 - alpha);
    const float folded = rounded_to(norm_dtype, static_cast<float>(norm[j] / wanted));
    if (std::isnormal(folded)) scales[j] = norm[j] / folded;
  }
  return scales;
}

void scale_columns(std::span<float> weights, std::span<const float> scales) {
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] *= scales[i % scales.size()];
}

}  // namespace dculab::engine
