// Attention sinks, which move along with the window.
#include "lower/kv/kv_memory.hpp"

namespace dculab::lower {

Bytes sinks_memory(const ModelShape& model, const KvRetention& retention) {
  return storage(Dtype::f32, 2.0 * model.num_layers() * retention.sink_tokens * model.heads().kv_width());
}

}  // namespace dculab::lower
