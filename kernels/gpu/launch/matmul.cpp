#include "kernels/gpu/launch/start.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

void start(Stream&, const Matmul&) { throw std::logic_error("Matmul: not built yet"); }

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
