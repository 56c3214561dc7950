// How much a paged attention kernel walks: summed over the sequences of a step, from the kernel's own tiling.
#pragma once

#include "core/batch.hpp"
#include "core/engine_options.hpp"
#include "core/model_shape.hpp"
#include "core/op.hpp"

namespace dculab {

// The attention op of one layer for the sequences of `batch` in `phase`; num_sequences == 0 when there are none. With a
// sliding window only the tokens that the kernel loads count: the window, rounded up to whole tiles.
[[nodiscard]] Op plan_attention(const ModelShape& model, const EngineOptions& options, const Batch& batch, Phase phase);

// H2O's pass over the keys of all sequences: what each cached token gets of the new tokens' attention is added to a sum
// for each KV head. One workgroup for each sequence and KV head.
[[nodiscard]] Op plan_attention_scores(const ModelShape& model, const EngineOptions& options, const Batch& batch);

}  // namespace dculab
