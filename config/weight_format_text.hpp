// How weight formats are written: "f16", "int8", "gptq-int4" (128 input features per scale), "gptq-int4-g32",
// "gptq-int8-channel" (one scale per row), "mxfp4", "nf4" and "fp4" of bitsandbytes, "nf4-double" (double
// quantization), "llm-int8" (bitsandbytes' 8 bits).
#pragma once

#include <optional>
#include <string>

#include "config/key_tree.hpp"
#include "config/map_reader.hpp"
#include "core/dtype.hpp"

namespace dculab::config {

// Throws InputError without a place.
[[nodiscard]] WeightFormat parse_weight_format(const std::string& text);
[[nodiscard]] std::string weight_format_text(WeightFormat format);

// The key `weights` of a map, where it is there. `checkpoint` leaves `weights` empty.
void read_weights(MapReader& reader, std::optional<WeightFormat>& weights);

// What that key may be.
[[nodiscard]] FileKey weights_key(std::string meaning);

}  // namespace dculab::config
