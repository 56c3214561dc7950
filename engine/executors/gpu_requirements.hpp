// Which models and formats the GPU executor runs.
#pragma once

#include "core/dtype.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

// Throws InputError that says what is not supported. What only the weights themselves tell is refused when they are
// uploaded (gpu_weights.hpp).
void require_gpu_runnable(const ModelShape& shape, Dtype activation_dtype, ActivationMode activations);

}  // namespace dculab::engine
