// Which GPUs a machine file describes, as far as the kernels written for them differ.
#pragma once

#include "sim/hardware/machine.hpp"

namespace dculab::sim {

[[nodiscard]] inline bool is_nvidia(const Machine& machine) { return !machine.compute_capability.empty(); }

// Thread blocks form clusters, and a copy engine (TMA) fetches tiles while the warps that multiply do nothing else.
[[nodiscard]] inline bool is_hopper(const Machine& machine) { return machine.compute_capability == "9.0"; }

}  // namespace dculab::sim
