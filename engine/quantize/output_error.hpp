// How far a quantized matrix's outputs are from the original's.
#pragma once

#include <span>

#include "engine/quantize/round_to_nearest.hpp"

namespace dculab::engine {

// ||(W - Wq) X|| / ||W X|| over the calibration text, from its Hessian 2/N X X^T (Frobenius norms). An empty Hessian
// stands for the identity: ||W - Wq|| / ||W||. 0 when W X is 0.
[[nodiscard]] double relative_output_error(const WeightMatrix& weights, std::span<const float> quantized,
                                           std::span<const float> hessian);

}  // namespace dculab::engine
