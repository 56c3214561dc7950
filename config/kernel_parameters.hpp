// Parameters of a stack's kernels: "parameters: {triton_unified_attention_3d: {segments: 16}}" of a stack file, and
// "parameters.triton_unified_attention_3d.segments" of a scenario's `stack`.
#pragma once

#include <string>
#include <vector>

#include "config/map_reader.hpp"
#include "sim/hardware/stack.hpp"

namespace dculab::config {

// A parameter of a kernel that the stack lists.
struct StackParameter {
  std::string key;  // "parameters.KERNEL.NAME"
  const lower::KernelParameter* parameter = nullptr;
};
[[nodiscard]] std::vector<StackParameter> parameters_of(const sim::Stack& stack);

// The map under `parameters`. Both report what the stack's kernels do not have, and values that a kernel cannot have,
// with what is offered. Precondition: the stack's kernels are read.
void read_parameters(MapReader kernels, sim::Stack& stack);
void set_parameter(sim::Stack& stack, MapReader& reader, const Node& change);

}  // namespace dculab::config
