// Runs a model over calibration text and keeps statistics of its heads.
#pragma once

#include <span>
#include <vector>

#include "engine/calibration/observed_text.hpp"
#include "engine/regroup/head_statistics.hpp"

namespace dculab::engine {

// One entry for each layer. Throws InputError as observe_text() does, and when the text makes the model compute values
// that are not finite.
[[nodiscard]] std::vector<HeadStatistics> observe_heads(const ModelWeights& weights, std::span<const TokenId> tokens,
                                                        const TextRun& run,
                                                        SecondMoments moments = SecondMoments::omit);

}  // namespace dculab::engine
