// The devices that this program was built with.
#pragma once

#include <memory>

#include "kernels/gpu/device.hpp"
#include "kernels/gpu/host/workgroup.hpp"

namespace dculab::kernels::gpu {

// The GPU kernels on the host, lane by lane: for checking and for address traces.
[[nodiscard]] std::unique_ptr<Device> open_host_device(const host::HostOptions& options);

// Throw InputError when the program was built without HIP or CUDA, when there is no device `index`, or when no kernel
// was compiled for it.
[[nodiscard]] std::unique_ptr<Device> open_hip_device(int index);
[[nodiscard]] std::unique_ptr<Device> open_cuda_device(int index);

}  // namespace dculab::kernels::gpu
