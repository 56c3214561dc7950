// A GGUF header as the config.json that the same model has on the Hub.
#pragma once

#include <string>

#include "model/folder/gguf_header.hpp"
#include "model/model_shape.hpp"

namespace dculab {

// `file` names the header in messages. Throws InputError for an architecture that is not known, and for sizes that are
// missing or not the same in all layers.
[[nodiscard]] std::string gguf_config(const GgufHeader& header, const std::string& file);

// Gives a shape the format that comes nearest to how the layers' matrices are stored, with a note of how many bits
// their values take.
void set_gguf_weights(const GgufHeader& header, ModelShape& shape);

}  // namespace dculab
