#include <stdexcept>
#include <string>

#include "core/kv/kivi.hpp"
#include "core/kv/kvquant.hpp"
#include "engine/kv/cpu_kv_slice.hpp"
#include "engine/kv/critical_blocks.hpp"
#include "engine/kv/heavy_hitters.hpp"
#include "engine/kv/kivi.hpp"
#include "engine/kv/sinks.hpp"

namespace dculab::engine {

void CpuKvSlice::execute(const Op& op, const CpuKvLayer& /*layer*/) {
  throw std::invalid_argument("plan: " + std::string(op.name) + " is not of the KV cache that it is planned for");
}

std::unique_ptr<CpuKvSlice> make_cpu_kv_slice(const ModelShape& shape, const KvCacheOptions& options) {
  if (is_kivi(options.dtype)) return std::make_unique<KiviSlice>(shape, options);
  if (is_kvquant(options.dtype)) return make_kvquant_slice();
  return nullptr;
}

std::unique_ptr<CpuKvSlice> make_cpu_kv_slice(const ModelShape& shape, RetentionPolicy policy) {
  switch (policy) {
    case RetentionPolicy::all:
    case RetentionPolicy::window:
      return nullptr;
    case RetentionPolicy::sinks:
      return std::make_unique<SinkKeys>(shape);
    case RetentionPolicy::heavy_hitters:
      return std::make_unique<HeavyHitters>(shape);
    case RetentionPolicy::critical_blocks:
      return std::make_unique<CriticalBlocks>(shape);
  }
  return nullptr;
}

}  // namespace dculab::engine
