// What a step's formats make of its price.
#pragma once

#include <string>
#include <vector>

#include "core/engine_options.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::study {

// Formats that values are stored in and that the machine does not multiply, or not at a rate that anybody published;
// matrix units of AMD's and Hygon's cards that our own kernels leave idle; and what the stack's file says of the
// weights.
[[nodiscard]] std::vector<std::string> format_warnings(const sim::Machine& machine, const EngineOptions& options);

}  // namespace dculab::study
