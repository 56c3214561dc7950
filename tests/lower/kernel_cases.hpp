// Devices, ops and steps that kernels are asked about.
#pragma once

#include <algorithm>
#include <vector>

#include "lower/kernel_library.hpp"
#include "model/plan_step.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"

namespace dculab::lower::test {

using sim::test::a100_like;
using sim::test::llama_3_8b;
using sim::test::mi50_like;

inline Device dcu(const char* isa) {
  Device device = mi50_like();
  device.vendor = Vendor::hygon;
  device.isa = isa;
  return device;
}

inline Device amd(const char* isa) {
  Device device = dcu(isa);
  device.vendor = Vendor::amd;
  return device;
}

inline Device hopper() {
  Device device = a100_like();
  device.compute_capability = "9.0";
  return device;
}

inline const std::vector<Device>& devices() {
  static const std::vector<Device> all{dcu("gfx906"), dcu("gfx928"), dcu("gfx936"), amd("gfx90a"),
                                       amd("gfx942"), a100_like(),   hopper()};
  return all;
}

inline const Op& find(const StepPlan& plan, OpKind kind) { return *std::ranges::find(plan.ops, kind, &Op::kind); }

inline double requests(const Launch& launch, OperandRole role) {
  return std::ranges::find(launch.accesses(), role, &Access::role)->requests;
}

inline StepPlan step_of(Phase phase, int sequences, int context, EngineOptions options = {}) {
  return plan_step(llama_3_8b(), options, uniform_batch(phase, sequences, context));
}

inline AttentionTile tile_of(const AttentionKernel& kernel, OpKind kind, const StepPlan& step, const Device& device) {
  return kernel.tile(find(step, kind), step, device, {});
}

}  // namespace dculab::lower::test
