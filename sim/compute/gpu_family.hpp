// Which GPUs a machine file describes, as far as the kernels written for them differ.
#pragma once

#include <string>

#include "sim/hardware/machine.hpp"

namespace dculab::sim {

[[nodiscard]] inline bool is_nvidia(const Machine& machine) { return !machine.compute_capability.empty(); }

// Thread blocks form clusters, and a copy engine (TMA) fetches tiles while the warps that multiply do nothing else.
[[nodiscard]] inline bool is_hopper(const Machine& machine) { return machine.compute_capability == "9.0"; }

// Machines of one name here are built alike, as far as their files say: "compute capability 8.0", "gfx90a"; what is
// compiled for another's target counts to its family, and what says neither is alone.
[[nodiscard]] inline std::string family(const Machine& machine) {
  if (is_nvidia(machine)) return "compute capability " + machine.compute_capability;
  return machine.kernel_target.empty() ? machine.name : machine.kernel_target;
}

}  // namespace dculab::sim
