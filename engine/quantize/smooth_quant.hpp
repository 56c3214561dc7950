// SmoothQuant: moves the scale of activations into the weights, so that 8 bits do for both. Source: Xiao et al.,
// arXiv:2211.10438.
//
//   s_j = max|X_j|^alpha / max|W_j|^(1 - alpha)      X' = X / s,  W' = W s,  X' W'^T = X W^T
#pragma once

#include <span>
#include <vector>

#include "core/dtype.hpp"
#include "engine/quantize/round_to_nearest.hpp"

namespace dculab::engine {

// s for each in-feature of matrices that share an input, whose norm's weights are `norm`. Chosen so that norm / s is a
// number that `norm_dtype` holds: folding then changes the product by nothing but F32 rounding. 1 where activations,
// weights or the norm are 0.
[[nodiscard]] std::vector<float> smoothing_scales(std::span<const float> largest_activations,
                                                  std::span<const WeightMatrix> weights, std::span<const float> norm,
                                                  Dtype norm_dtype, double alpha);

// W s: column j times scales[j]. `weights` is [rows, scales.size()].
void scale_columns(std::span<float> weights, std::span<const float> scales);

}  // namespace dculab::engine
