// What calibration text says of the K and V of a model (KVQuant, Hooper et al., arXiv:2401.18079):
//
//   centre, half_range   of each channel of K: its 0.5 % and 99.5 % quantiles
//   levels               k-means of all K of a layer, and of all V, within their ranges and without their outliers; a
//                        squared error counts by the square of its range, as it does in K and V, and by Fisher
//                        information: the square of the loss's gradient to the value, 1 where none is given.
//                        Those of 2 bits are moved so that codes have the mean and standard deviation of what they
//                        stand for (Q-Norm).
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "core/batch.hpp"
#include "engine/checkpoint/kv_calibration.hpp"
#include "engine/checkpoint/kv_calibration_file.hpp"
#include "engine/checkpoint/model_weights.hpp"

namespace dculab::engine {

// Rows of K and V that the text has in a layer: [tokens, width].
struct KvRows {
  int width = 0;
  std::vector<float> k{}, v{};
  KvFisher fisher{};  // of each value; empty: 1
};
[[nodiscard]] KvLayerCalibration fit_kv(const KvRows& rows);

// `count` ascending levels in [-1, 1] with the least squared error of weights[i] numbers in the middle of bin i of as
// many equal bins.
[[nodiscard]] std::vector<float> fit_levels(std::span<const double> weights, int count);

// The levels for codes of `bits` bits, and the middles between them as bounds. Those of 2 bits then become
// (level - m2) * s1 / s2 + m1, with mean m1 and standard deviation s1 of the places, m2 and s2 of the levels of their
// codes (Q-Norm).
[[nodiscard]] KvCodebook fit_codebook(std::span<const double> weights, int bits);

struct KvCalibrationRun {
  int num_threads = 1;
  std::filesystem::path fisher{};  // file of Fisher weights of the tokens; empty: all are 1
  std::function<void(double share)> on_progress{};
};

// Layer after layer. Throws InputError for tokens outside the vocabulary, a text of less than 256 tokens, a
// quantized model, one with layers that have no K and V of their own, K or V that are not finite, and Fisher weights of
// more or fewer tokens.
[[nodiscard]] KvCalibration calibrate_kv(const ModelWeights& weights, std::span<const TokenId> tokens,
                                         const KvCalibrationRun& run);

}  // namespace dculab::engine
