// Figures of a stack that a scenario changes: "reached.matmul_compute: 0.7", "host.per_step: 1 ms", or relative to the
// stack's own, "kernels_per_op: 2 x"; and parameters of its kernels, "parameters.triton_unified_attention_3d.segments:
// 8".
#pragma once

#include <span>

#include "config/map_reader.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::config {

// Of the stack that runs on `machine`. Each node is a figure's key in a stack file with its value. Reports unknown keys
// with what is offered, wrong units and values out of range. The changed figures' source is the scenario.
void set_stack_figures(sim::Machine& machine, std::span<const Node> figures, ProblemList& problems);

}  // namespace dculab::config
