// How large keys and values become on calibration text, and the scales of an FP8 KV cache that follow.
#pragma once

#include <span>
#include <vector>

#include "engine/calibration/observed_text.hpp"

namespace dculab::engine {

// The largest magnitudes in a layer: of keys as they are cached, rotated, and of values.
struct KvRange {
  float k = 0, v = 0;
};

// [num_hidden_layers]; layers that read the K and V of an earlier one have its ranges. Throws InputError as
// observe_text() does, for a model with layers that cache no K and V (latents), and when the text makes them infinite
// or NaN.
[[nodiscard]] std::vector<KvRange> observe_kv_ranges(const ModelWeights& weights, std::span<const TokenId> tokens,
                                                     const TextRun& run);

// The scale with which twice the range is E4M3's largest value, 448: other text may be louder. That room costs nothing
// but the last binade of the smallest values, since FP8 has an exponent. A range of 0 has a scale of 1.
[[nodiscard]] std::vector<kernels::Fp8KvScales> e4m3_scales(std::span<const KvRange> ranges);

}  // namespace dculab::engine
