// This host as a machine of the simulator: what `probe` measured, with a source for every figure.
#pragma once

#include "engine/probe/host_measurements.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::study {

[[nodiscard]] sim::Machine to_machine(const engine::HostMeasurements& host);

}  // namespace dculab::study
