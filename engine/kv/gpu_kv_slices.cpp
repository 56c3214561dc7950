#include <stdexcept>
#include <string>

#include "engine/kv/gpu_critical_blocks.hpp"
#include "engine/kv/gpu_heavy_hitters.hpp"
#include "engine/kv/gpu_kivi.hpp"
#include "engine/kv/gpu_kv_slice.hpp"
#include "engine/kv/gpu_sinks.hpp"

namespace dculab::engine {

void GpuKvSlice::execute(const Op& op, const GpuKvLayer& /*layer*/) {
  throw std::invalid_argument("plan: " + std::string(op.name) + " is not of the KV cache that it is planned for");
}

std::unique_ptr<GpuKvSlice> make_gpu_kv_slice(const std::shared_ptr<kernels::gpu::Device>& device,
                                              const ModelShape& shape, const GpuStepLimits& limits,
                                              const KvCacheOptions& kv_cache, int max_blocks_per_seq,
                                              RetentionPolicy policy) {
  if (is_kivi(kv_cache.dtype)) return std::make_unique<GpuKivi>(device, kv_cache);  // which goes with no other policy
  switch (policy) {
    case RetentionPolicy::all:
    case RetentionPolicy::window:
      return nullptr;
    case RetentionPolicy::sinks:
      return std::make_unique<GpuSinkKeys>(device, shape, limits);
    case RetentionPolicy::heavy_hitters:
      return std::make_unique<GpuHeavyHitters>(device, shape, limits);
    case RetentionPolicy::critical_blocks:
      return std::make_unique<GpuCriticalBlocks>(device, shape, limits, max_blocks_per_seq);
  }
  return nullptr;
}

}  // namespace dculab::engine
