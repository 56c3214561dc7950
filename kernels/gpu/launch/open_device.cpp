#include "kernels/gpu/open_device.hpp"

#include "kernels/gpu/launch/stream_device.hpp"
#include "kernels/gpu/layers/norms.hip.hpp"

namespace dculab::kernels::gpu {

#if DCULAB_GPU_HOST

std::unique_ptr<Device> open_host_device(const host::HostOptions& options) {
  return std::make_unique<host_build::StreamDevice>(host_build::Stream{options}, host_build::describe(options));
}

#else

namespace DCULAB_GPU_BUILD {
namespace {

template <int kWave>
std::unique_ptr<Device> open(int index) {
  const Stream stream = open_stream(index);  // first: it says when there is no device
  const DeviceInfo info = describe(index);
  if (info.wave_size != kWave)
    throw InputError(info.name + " has waves of " + std::to_string(info.wave_size) +
                     " lanes; the kernels of this build are for " + std::to_string(kWave));
  require_compiled(rms_norm_kernel<kWave>, info);
  return std::make_unique<StreamDevice>(stream, info);
}

}  // namespace
}  // namespace DCULAB_GPU_BUILD

#if DCULAB_GPU_HIP
std::unique_ptr<Device> open_hip_device(int index) { return hip_build::open<64>(index); }

std::string hip_bus_id(int index) {
  char id[64] = {};
  return DCULAB_API(DeviceGetPCIBusId)(id, sizeof id, index) == DCULAB_API(Success) ? id : "";
}
#else
std::unique_ptr<Device> open_cuda_device(int index) { return cuda_build::open<32>(index); }
#endif

#endif

}  // namespace dculab::kernels::gpu
