// Which kinds of layers the executors have kernels for.
#pragma once

#include <string>

#include "model/model_shape.hpp"

namespace dculab::engine {

// Throws InputError that begins with `engine` ("the CPU engine") and says what it runs.
void require_known_layers(const ModelShape& shape, const std::string& engine);

}  // namespace dculab::engine
