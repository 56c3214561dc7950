#include "engine/executors/plan_walk.hpp"

#include <algorithm>

namespace dculab::engine {

int width(const ModelShape& shape, const LayerKind& kind, Buffer buffer) {
  const Heads& heads = kind.attention.heads;
  switch (buffer) {
    case Buffer::none:
      return 0;
    case Buffer::residual:
    case Buffer::normed:
    case Buffer::projected:
      return shape.hidden_size;
    case Buffer::mlp_projected:
      return kind.block == BlockKind::sequential ? 0 : shape.hidden_size;
    case Buffer::qkv:
      return heads.query_width() + 2 * heads.kv_width();
    case Buffer::attention:
      return heads.query_width();
    case Buffer::up:
      return kind.mlp.up_width();
    case Buffer::activated:
      return kind.mlp.intermediate_size;
    case Buffer::router_logits:
      return kind.experts ? kind.experts->num_experts : 0;
    case Buffer::expert_up:
      return kind.experts ? 2 * kind.experts->intermediate_size : 0;
    case Buffer::expert_activated:
      return kind.experts ? kind.experts->intermediate_size : 0;
    case Buffer::expert_output:
      return kind.experts ? shape.hidden_size : 0;
    case Buffer::logits:
      return shape.vocab_size;
  }
  return 0;
}

int rows_per_token(const LayerKind& kind, Buffer buffer) {
  const bool of_experts =
      buffer == Buffer::expert_up || buffer == Buffer::expert_activated || buffer == Buffer::expert_output;
  return of_experts && kind.experts ? kind.experts->num_experts_per_tok : 1;
}

int rows_per_token(const ModelShape& shape, Buffer buffer) {
  int most = 1;
  for (const LayerKind& kind : shape.kinds) most = std::max(most, rows_per_token(kind, buffer));
  return most;
}

int width(const ModelShape& shape, Buffer buffer) {
  int widest = 0;
  for (const LayerKind& kind : shape.kinds) widest = std::max(widest, width(shape, kind, buffer));
  return widest;
}

void require_depth(const Op& op, const ModelShape& shape) {
  require(op.layer_kind < shape.kinds.size(), op, "is for layers that the model does not have");
  require(op.count == (op.stage == Stage::layer ? shape.num_layers(op.layer_kind) : 1), op, "is for another depth");
}

void require_buffers(const Op& op, const ModelShape& shape) {
  const LayerKind& kind = layer_of(op, shape);
  const auto read = op.k > 0 ? op.k : op.n;
  require(width(shape, kind, op.input) == read && width(shape, kind, op.output) == op.n, op,
          "has another shape than its buffers");
}

}  // namespace dculab::engine
