// How much a paged attention kernel walks: summed over the sequences of a step, from the kernel's own tiling.
#pragma once

#include "core/batch.hpp"
#include "core/engine_options.hpp"
#include "core/model_shape.hpp"
#include "core/op.hpp"

namespace dculab {

// The attention op of one layer for the sequences of `batch` in `phase`; num_sequences == 0 when there are none.
[[nodiscard]] Op plan_attention(const ModelShape& model, const EngineOptions& options, const Batch& batch, Phase phase);

}  // namespace dculab
