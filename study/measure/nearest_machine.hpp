// Which shipped machine a GPU is, or is nearest to, by what its driver says of it.
#pragma once

#include <optional>
#include <string>

#include "engine/probe/gpu_probe.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::study {

// Of the machines with its waves those of its architecture ("gfx936"), or, of a GPU that states none, those whose name
// begins with a word of the device's. Of several one that begins so, then the one with more words of the name, then the
// nearest in compute units and memory. Nothing where there is none.
[[nodiscard]] std::optional<sim::Machine> nearest_machine(const kernels::gpu::DeviceInfo& device);

// The same, or the machine `name` where one is named. Throws InputError that lists the machines there are to name.
[[nodiscard]] sim::Machine machine_like(const std::string& name, const kernels::gpu::DeviceInfo& device);

}  // namespace dculab::study
