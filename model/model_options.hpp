// Which options a model can be run with.
#pragma once

#include <string>
#include <vector>

#include "core/activation_mode.hpp"
#include "core/engine_options.hpp"
#include "model/model_shape.hpp"

namespace dculab {

// Why the layers of `model` cannot take activations so ("needs ..., and ...; what to do"); empty when they can.
[[nodiscard]] std::string problem(ActivationMode mode, const ModelShape& model);

// Why `model` cannot be served with the options; empty when it can. Precondition: problems(options) is empty.
[[nodiscard]] std::vector<std::string> problems(const EngineOptions& options, const ModelShape& model);

}  // namespace dculab
