#include "kernels/gpu/launch/start.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

void start(Stream&, const PagedAttention&) { throw std::logic_error("PagedAttention: not built yet"); }

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
