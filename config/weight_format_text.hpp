// How weight formats are written: "f16", "int8", "gptq-int4" (128 input features per scale), "gptq-int4-g32",
// "gptq-int8-channel" (one scale per row).
#pragma once

#include <string>

#include "core/dtype.hpp"

namespace dculab::config {

// Throws InputError without a place.
[[nodiscard]] WeightFormat parse_weight_format(const std::string& text);
[[nodiscard]] std::string weight_format_text(WeightFormat format);

}  // namespace dculab::config
