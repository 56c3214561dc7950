#include "kernels/gpu/open_device.hpp"

#include "kernels/gpu/launch/stream_device.hpp"

namespace dculab::kernels::gpu {

#if DCULAB_GPU_HOST

std::unique_ptr<Device> open_host_device(const host::HostOptions& options) {
  return std::make_unique<host_build::StreamDevice>(host_build::Stream{options}, host_build::describe(options));
}

#elif DCULAB_GPU_HIP

std::unique_ptr<Device> open_hip_device(int index) {
  return std::make_unique<hip_build::StreamDevice>(hip_build::open_stream(index), hip_build::describe(index));
}

#else

std::unique_ptr<Device> open_cuda_device(int index) {
  return std::make_unique<cuda_build::StreamDevice>(cuda_build::open_stream(index), cuda_build::describe(index));
}

#endif

}  // namespace dculab::kernels::gpu
