// The devices that this program was built with.
#pragma once

#include <memory>
#include <string>

#include "kernels/gpu/device.hpp"
#include "kernels/gpu/host/workgroup.hpp"

namespace dculab::kernels::gpu {

// The GPU kernels on the host, lane by lane: for checking and for address traces.
[[nodiscard]] std::unique_ptr<Device> open_host_device(const host::HostOptions& options);

// Throw InputError when the program was built without HIP or CUDA, when there is no device `index`, or when no kernel
// was compiled for it.
[[nodiscard]] std::unique_ptr<Device> open_hip_device(int index);
[[nodiscard]] std::unique_ptr<Device> open_cuda_device(int index);

// Where HIP's device `index` is on the PCI bus, "0000:c1:00.0"; empty where that is not known.
[[nodiscard]] std::string hip_bus_id(int index);

}  // namespace dculab::kernels::gpu
