// What the kernels of a kivi4 or kivi2 cache are told about a step.
#pragma once

#include "engine/executors/step_inputs.hpp"
#include "engine/kv/kv_storage.hpp"
#include "kernels/ops.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

// Of the sequences of one phase. `qkv` [tokens of the step, query_width + 2 * kv_width] holds Q, K and V.
[[nodiscard]] kernels::KiviArgs kivi_args(const ModelShape& model, const StepInputs& inputs, Phase phase,
                                          const float* qkv, const KvStorage& kv, int layer);

}  // namespace dculab::engine
