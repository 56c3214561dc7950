#include "engine/executors/rope_table.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace dculab::engine {
namespace {

// Long wavelengths are stretched by `factor`, short ones kept, those between blended.
float scaled_llama3(float frequency, const RopeScaling& scaling) {
  const auto original = static_cast<float>(scaling.original_max_position_embeddings);
  const auto low = static_cast<float>(scaling.low_freq_factor);
  const auto high = static_cast<float>(scaling.high_freq_factor);
  const auto factor = static_cast<float>(scaling.factor);
  const float wavelength = 2.0F * std::numbers::pi_v<float> / frequency;
  if (wavelength >= original / low) return frequency / factor;
  if (wavelength < original / high) return frequency;
  const float smooth = (original / wavelength - low) / (high - low);
  return (1.0F - smooth) * frequency / factor + smooth * frequency;
}

// The plane that turns `turns` times within the original context.
double plane_of(double turns, int rotary_dim, const Position& position) {
  const double context = position.rope_scaling.original_max_position_embeddings;
  return rotary_dim * std::log(context / (turns * 2 * std::numbers::pi)) / (2 * std::log(position.rope_theta));
}

// Planes that turn often keep their frequency, slow ones are stretched by the factor, those between blended.
// Source: Peng et al., YaRN, arXiv:2309.00071.
std::vector<float> scaled_yarn(std::vector<float> frequencies, int rotary_dim, const Position& position) {
  const RopeScaling& scaling = position.rope_scaling;
  double low = plane_of(scaling.beta_fast, rotary_dim, position);
  double high = plane_of(scaling.beta_slow, rotary_dim, position);
  if (scaling.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, rotary_dim - 1.0);
  if (low == high) high += 0.001;
  for (std::size_t plane = 0; plane < frequencies.size(); ++plane) {
    const auto stretched = static_cast<float>(std::clamp((static_cast<double>(plane) - low) / (high - low), 0.0, 1.0));
    frequencies[plane] =
        frequencies[plane] / static_cast<float>(scaling.factor) * stretched + frequencies[plane] * (1.0F - stretched);
  }
  return frequencies;
}

std::vector<float> plain_frequencies(const Rotation& rotation) {
  const int rotary_dim = rotation.rotary_dim;
  std::vector<float> frequencies(static_cast<std::size_t>(rotary_dim / 2));
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(rotary_dim);
    frequencies[i] = 1.0F / std::pow(static_cast<float>(rotation.position.rope_theta), exponent);
  }
  return frequencies;
}

// Source: Ding et al., LongRoPE, arXiv:2402.13753.
std::vector<float> divided(std::vector<float> frequencies, const std::vector<double>& factors) {
  for (std::size_t i = 0; i < std::min(frequencies.size(), factors.size()); ++i)
    frequencies[i] /= static_cast<float>(factors[i]);
  return frequencies;
}

}  // namespace

std::vector<float> rope_frequencies(const Rotation& rotation) {
  const RopeScaling& scaling = rotation.position.rope_scaling;
  std::vector<float> frequencies = plain_frequencies(rotation);
  switch (scaling.kind) {
    case RopeScalingKind::none:
      break;
    case RopeScalingKind::linear:
      for (float& frequency : frequencies) frequency /= static_cast<float>(scaling.factor);
      break;
    case RopeScalingKind::llama3:
      for (float& frequency : frequencies) frequency = scaled_llama3(frequency, scaling);
      break;
    case RopeScalingKind::yarn:
      return scaled_yarn(std::move(frequencies), rotation.rotary_dim, rotation.position);
    case RopeScalingKind::longrope:
      return divided(std::move(frequencies), scaling.short_factor);
  }
  return frequencies;
}

const float* RopeTable::rows(int num_positions) {
  if (num_positions <= num_rows_) return cos_sin_.data();
  const int first = num_rows_;
  num_rows_ = std::max(num_positions, 2 * num_rows_);
  cos_sin_.resize(static_cast<std::size_t>(num_rows_) * 2 * frequencies_.size());
  for (int position = first; position < num_rows_; ++position) fill(position);
  return cos_sin_.data();
}

void RopeTable::fill(int position) {
  const std::size_t half = frequencies_.size();
  float* const row = cos_sin_.data() + static_cast<std::size_t>(position) * 2 * half;
  for (std::size_t i = 0; i < half; ++i) {
    if (position < trained_positions_) {
      const float angle = static_cast<float>(position) * frequencies_[i];
      row[i] = std::cos(angle) * factor_;
      row[half + i] = std::sin(angle) * factor_;
    } else {
      const double angle = static_cast<double>(position) * static_cast<double>(frequencies_[i]);
      row[i] = static_cast<float>(std::cos(angle)) * factor_;
      row[half + i] = static_cast<float>(std::sin(angle)) * factor_;
    }
  }
}

}  // namespace dculab::engine
