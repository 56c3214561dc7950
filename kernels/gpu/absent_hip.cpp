#include "core/error.hpp"
#include "kernels/gpu/open_device.hpp"

namespace dculab::kernels::gpu {

std::unique_ptr<Device> open_hip_device(int /*index*/) {
  throw InputError(
      "this program was built without HIP; install hipcc, libamdhip64-dev and rocm-device-libs and build it with "
      "`cmake --workflow --preset hip`, or use --device host-gpu or cpu");
}

std::string hip_bus_id(int /*index*/) { return ""; }

}  // namespace dculab::kernels::gpu
