#include "engine/executors/rope_table.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace dculab::engine {
namespace {

// Long wavelengths are stretched by `factor`, short ones kept, those between blended.
float scaled_llama3(float frequency, const RopeScaling& scaling) {
  const auto original = static_cast<float>(scaling.original_max_position_embeddings);
  const auto low = static_cast<float>(scaling.low_freq_factor);
  const auto high = static_cast<float>(scaling.high_freq_factor);
  const auto factor = static_cast<float>(scaling.factor);
  const float wavelength = 2.0F * std::numbers::pi_v<float> / frequency;
  if (wavelength > original / low) return frequency / factor;
  if (wavelength < original / high) return frequency;
  const float smooth = (original / wavelength - low) / (high - low);
  return (1.0F - smooth) * frequency / factor + smooth * frequency;
}

}  // namespace

std::vector<float> rope_frequencies(const Gqa& attention) {
  const int head_dim = attention.heads.head_dim;
  const double theta = attention.position.rope_theta;
  const RopeScaling& scaling = attention.position.rope_scaling;
  std::vector<float> frequencies(static_cast<std::size_t>(head_dim / 2));
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(head_dim);
    float frequency = 1.0F / std::pow(static_cast<float>(theta), exponent);
    if (scaling.kind == RopeScalingKind::linear) frequency /= static_cast<float>(scaling.factor);
    if (scaling.kind == RopeScalingKind::llama3) frequency = scaled_llama3(frequency, scaling);
    frequencies[i] = frequency;
  }
  return frequencies;
}

const float* RopeTable::rows(int num_positions) {
  if (num_positions <= num_rows_) return cos_sin_.data();
  const int first = num_rows_;
  num_rows_ = std::max(num_positions, 2 * num_rows_);
  const std::size_t half = frequencies_.size();
  cos_sin_.resize(static_cast<std::size_t>(num_rows_) * 2 * half);
  for (int position = first; position < num_rows_; ++position) {
    float* const row = cos_sin_.data() + static_cast<std::size_t>(position) * 2 * half;
    for (std::size_t i = 0; i < half; ++i) {
      if (position < trained_positions_) {
        const float angle = static_cast<float>(position) * frequencies_[i];
        row[i] = std::cos(angle);
        row[half + i] = std::sin(angle);
      } else {
        const double angle = static_cast<double>(position) * static_cast<double>(frequencies_[i]);
        row[i] = static_cast<float>(std::cos(angle));
        row[half + i] = static_cast<float>(std::sin(angle));
      }
    }
  }
  return cos_sin_.data();
}

}  // namespace dculab::engine
