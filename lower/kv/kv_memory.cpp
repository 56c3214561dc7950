#include "lower/kv/kv_memory.hpp"

namespace dculab::lower {

Bytes kv_policy_memory(DeviceKind device, const ModelShape& model, const EngineOptions& options) {
  const KvRetention& retention = options.kv_retention;
  switch (retention.policy) {
    case RetentionPolicy::all:
    case RetentionPolicy::window:
      return {};
    case RetentionPolicy::sinks:
      return sinks_memory(model, retention);
    case RetentionPolicy::heavy_hitters:
      return heavy_hitters_memory(device, model, retention, options.block_size);
    case RetentionPolicy::critical_blocks:
      return critical_blocks_memory(device, model, retention, options.block_size);
  }
  return {};
}

}  // namespace dculab::lower
