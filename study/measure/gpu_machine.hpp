// A GPU as a machine of the simulator: what the probe measured, over a shipped machine that has the figures no probe of
// ours can see (caches, latencies, registers), each of which keeps its own evidence.
#pragma once

#include <string>

#include "engine/probe/gpu_probe.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::study {

// A measured rate above the peak of `like` becomes the peak: no honest measurement may later be refused for it.
// Throws InputError where `like` cannot be this device.
[[nodiscard]] sim::Machine to_machine(const engine::GpuMeasurements& gpu, const sim::Machine& like);

}  // namespace dculab::study
