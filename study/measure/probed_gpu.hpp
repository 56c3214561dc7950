// A GPU of this machine, measured, and the machine that it is to the simulator.
#pragma once

#include <optional>
#include <string>

#include "engine/executors/open_executor.hpp"
#include "engine/probe/gpu_probe.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::study {

struct GpuProbeQuestion {
  engine::DeviceChoice device;
  bool wants_machine = false;
  std::string like;  // what it starts from: a shipped machine, or a file; empty: the one nearest to the device
};

struct ProbedGpu {
  engine::GpuMeasurements measurements;
  engine::DeviceReality reality = engine::DeviceReality::real;
  std::optional<sim::Machine> machine;  // where it is wanted
};

// Throws InputError for a machine of an emulated GPU, or where none is known to start from.
[[nodiscard]] ProbedGpu probe_gpu(const GpuProbeQuestion& question);

}  // namespace dculab::study
