// Which models and formats the GPU executor runs.
#pragma once

#include "core/dtype.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

// Throws InputError for a model whose attention no GPU kernel runs: over latents, or over the K and V of another layer.
void require_gpu_attention(const ModelShape& shape);

// Throws InputError that says what is not supported. What only the weights themselves tell is refused when they are
// uploaded (gpu_weights.hpp).
void require_gpu_runnable(const ModelShape& shape, Dtype activation_dtype, ActivationMode activations);

}  // namespace dculab::engine
