// How users name the ways in which quantized matmuls take their activations.
#pragma once

#include <optional>
#include <string_view>

#include "core/dtype.hpp"

namespace dculab {

// "exact", "int8".
[[nodiscard]] std::string_view name(ActivationMode mode);
[[nodiscard]] std::optional<ActivationMode> parse_activation_mode(std::string_view text);

}  // namespace dculab
