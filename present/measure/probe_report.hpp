// What `dculab probe` measured, of this host or of a GPU.
#pragma once

#include "engine/probe/gpu_probe.hpp"
#include "engine/probe/host_measurements.hpp"
#include "present/output/report.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::present {

// `machine`: the host's, made of the measurements.
[[nodiscard]] Report host_probe_report(const engine::HostMeasurements& host, const sim::Machine& machine);

[[nodiscard]] Report gpu_probe_report(const engine::GpuMeasurements& gpu, engine::DeviceReality reality);

}  // namespace dculab::present
