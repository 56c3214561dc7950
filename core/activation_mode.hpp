// How matmuls take their activations: the names that users know, and which weights go with which.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/dtype.hpp"

namespace dculab {

// "exact", "int8", "bf16", "fp8".
[[nodiscard]] std::string_view name(ActivationMode mode);
[[nodiscard]] std::optional<ActivationMode> parse_activation_mode(std::string_view text);

// Whether products with such weights can take activations so. Those of a model that cannot stay exact.
[[nodiscard]] bool takes_activations(WeightFormat weights, ActivationMode mode);

}  // namespace dculab
