#include "engine/executors/plan_walk.hpp"

namespace dculab::engine {

int width(const ModelShape& shape, Buffer buffer) {
  switch (buffer) {
    case Buffer::none:
      return 0;
    case Buffer::residual:
    case Buffer::normed:
    case Buffer::projected:
      return shape.hidden_size;
    case Buffer::mlp_projected:
      return shape.block == BlockKind::sequential ? 0 : shape.hidden_size;
    case Buffer::qkv:
      return shape.query_width() + 2 * shape.kv_width();
    case Buffer::attention:
      return shape.query_width();
    case Buffer::up:
      return (shape.mlp == MlpKind::gated ? 2 : 1) * shape.intermediate_size;
    case Buffer::activated:
      return shape.intermediate_size;
    case Buffer::logits:
      return shape.vocab_size;
  }
  return 0;
}

void require_buffers(const Op& op, const ModelShape& shape) {
  const auto read = op.k > 0 ? op.k : op.n;
  require(width(shape, op.input) == read && width(shape, op.output) == op.n, op, "has another shape than its buffers");
}

}  // namespace dculab::engine
