// Runs a model over calibration text and keeps statistics of its heads.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/batch.hpp"
#include "engine/checkpoint/model_weights.hpp"
#include "engine/regroup/head_statistics.hpp"

namespace dculab::engine {

struct CalibrationRun {
  int window_tokens = 512;  // the text is cut into pieces of this size, each read on its own; at most the context
  int num_threads = 1;
  SecondMoments second_moments = SecondMoments::omit;
  std::function<void(double share)> on_progress{};
};

// One entry for each layer. Throws InputError when the text is empty, holds tokens the model does not know, or makes it
// compute values that are not finite.
[[nodiscard]] std::vector<HeadStatistics> observe_heads(const ModelWeights& weights, std::span<const TokenId> tokens,
                                                        const CalibrationRun& run);

}  // namespace dculab::engine
