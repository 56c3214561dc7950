// The shape of a model from its config.json.
#pragma once

#include <string>
#include <string_view>

#include "model/model_shape.hpp"
#include "model/quantization_config.hpp"

namespace dculab {

// What the note of a model begins with that has layers for further tokens; not true where speculation drafts with them.
inline constexpr std::string_view kUncountedPredictors = "the layers that predict further tokens";

// `file` names the text in messages, `name` the model in reports. Throws InputError: file, line, what is not supported.
[[nodiscard]] ModelShape parse_model_shape(std::string text, const std::string& file, std::string name);

// How the shape's matrices are quantized, where config.json does not say.
void set_quantization(ModelShape& shape, const QuantizationConfig& config);

}  // namespace dculab
