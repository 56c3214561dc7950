#include "kernels/gpu/launch/start.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

void start(Stream&, const PrefillAttention&) { throw std::logic_error("PrefillAttention: not built yet"); }

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
