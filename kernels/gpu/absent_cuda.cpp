#include "core/error.hpp"
#include "kernels/gpu/open_device.hpp"

namespace dculab::kernels::gpu {

std::unique_ptr<Device> open_cuda_device(int /*index*/) {
  throw InputError(
      "this program was built without CUDA; build it with `cmake --workflow --preset cuda` where nvcc is, or use "
      "--device host-gpu or cpu");
}

}  // namespace dculab::kernels::gpu
