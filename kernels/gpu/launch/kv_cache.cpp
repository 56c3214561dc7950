#include "kernels/gpu/launch/start.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

void start(Stream&, const ReshapeAndCache&) { throw std::logic_error("ReshapeAndCache: not built yet"); }
void start(Stream&, const GatherCachedKv&) { throw std::logic_error("GatherCachedKv: not built yet"); }
void start(Stream&, const CopyBlocks&) { throw std::logic_error("CopyBlocks: not built yet"); }

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
