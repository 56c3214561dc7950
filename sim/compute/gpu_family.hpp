// Which GPUs a machine file describes, as far as the kernels written for them differ.
#pragma once

#include "sim/hardware/machine.hpp"

namespace dculab::sim {

// Waves (warps) of 32 lanes.
[[nodiscard]] inline bool is_nvidia(const Machine& machine) {
  return machine.kind == MachineKind::gpu && machine.waves.wave_size == 32;
}

// Compute capability 9.0: thread blocks form clusters, and a copy engine (TMA) fetches tiles while the warps that
// multiply do nothing else. Here: more shared memory than any GPU before has.
[[nodiscard]] inline bool is_hopper(const Machine& machine) {
  constexpr Bytes kAmpereLds{200 * 1024.0};
  return is_nvidia(machine) && machine.waves.lds_per_unit > kAmpereLds;
}

}  // namespace dculab::sim
