// What a stack's file says, and what holds where it says nothing.
#pragma once

#include <vector>

#include "present/values/machine_figures.hpp"
#include "sim/hardware/stack.hpp"

namespace dculab::present {

// In the order of stacks/SCHEMA.md. A kernel's source is where its geometry is from.
[[nodiscard]] std::vector<MachineFigure> stack_values(const sim::Stack& stack);

}  // namespace dculab::present
