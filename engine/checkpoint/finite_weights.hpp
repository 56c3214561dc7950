// Whether all weights of a model are numbers: what is made of a model would carry a NaN on.
#pragma once

#include "engine/checkpoint/model_weights.hpp"

namespace dculab::engine {

// Throws InputError with the tensor's name where a weight is NaN or infinite.
void require_finite(const ModelWeights& weights);

}  // namespace dculab::engine
