// Which clocks and which power cap a GPU has now: what was measured holds for these.
#pragma once

#include <filesystem>
#include <string>

#include "engine/executors/open_executor.hpp"

namespace dculab::engine {

// "1319 of 1500 MHz, memory 1000 of 1000 MHz, power cap 250 W", of a DCU or AMD GPU, as far as its driver says; empty
// for other devices.
[[nodiscard]] std::string device_clocks(const DeviceChoice& device);

// The same from the folder of a PCI device, /sys/bus/pci/devices/0000:c1:00.0: its pp_dpm_sclk, pp_dpm_mclk and
// hwmon/hwmon*/power1_cap, as https://docs.kernel.org/gpu/amdgpu/thermal.html describes them.
[[nodiscard]] std::string clocks_in(const std::filesystem::path& folder);

}  // namespace dculab::engine
