// How matmuls take their activations: the names that users know, and which weights go with which.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/dtype.hpp"
#include "core/model_shape.hpp"

namespace dculab {

// "exact", "int8", "bf16".
[[nodiscard]] std::string_view name(ActivationMode mode);
[[nodiscard]] std::optional<ActivationMode> parse_activation_mode(std::string_view text);

// Whether products with such weights can take activations so. Those of a model that cannot stay exact.
[[nodiscard]] bool takes_activations(WeightFormat weights, ActivationMode mode);

// Why the layers of `model` cannot take activations so ("needs ..., and ...; what to do"); empty when they can.
[[nodiscard]] std::string problem(ActivationMode mode, const ModelShape& model);

}  // namespace dculab
