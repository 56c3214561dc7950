// What calibration text says of the K and V of a model (KVQuant, Hooper et al., arXiv:2401.18079):
//
//   centre, half_range   of each channel of K: its 0.5 % and 99.5 % quantiles
//   levels               k-means of all K of a layer, and of all V, within their ranges and without their outliers; a
//                        squared error counts by the square of its range, as it does in K and V. The paper weighs it by
//                        Fisher information besides, which takes gradients.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/batch.hpp"
#include "engine/checkpoint/model_weights.hpp"
#include "engine/kv/kv_calibration.hpp"

namespace dculab::engine {

// Rows of K and V that the text has in a layer: [tokens, width].
struct KvRows {
  int width = 0;
  std::vector<float> k{}, v{};
};
[[nodiscard]] KvLayerCalibration fit_kv(const KvRows& rows);

// `count` ascending levels in [-1, 1] with the least squared error of weights[i] numbers in the middle of bin i of as
// many equal bins.
[[nodiscard]] std::vector<float> fit_levels(std::span<const double> weights, int count);

// Layer after layer. Throws InputError for tokens outside the vocabulary, a text of less than 256 tokens, a
// quantized model, one with layers that have no K and V of their own, and K or V that are not finite.
[[nodiscard]] KvCalibration calibrate_kv(const ModelWeights& weights, std::span<const TokenId> tokens, int num_threads,
                                         const std::function<void(double share)>& on_progress);

}  // namespace dculab::engine
