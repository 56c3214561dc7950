#include "engine/executors/plan_walk.hpp"

#include <algorithm>

namespace dculab::engine {

namespace {

// Buffers that attention alone uses.
[[nodiscard]] int width(const Gqa& attention, Buffer buffer) {
  if (buffer == Buffer::qkv) return attention.projected_width();
  return buffer == Buffer::attention ? attention.heads.query_width() : 0;
}

[[nodiscard]] int width(const Mla& attention, Buffer buffer) {
  switch (buffer) {
    case Buffer::qkv:
      return (attention.q_lora_rank > 0 ? attention.q_lora_rank : attention.query_width()) + attention.latent_width();
    case Buffer::queries:
      return attention.query_width();
    case Buffer::expanded:
      return attention.expanded_width();
    case Buffer::latent_queries:
      return attention.num_attention_heads * attention.latent_width();
    case Buffer::latent_outputs:
      return attention.num_attention_heads * attention.kv_lora_rank;
    case Buffer::attention:
      return attention.value_width();
    default:
      return 0;
  }
}

[[nodiscard]] int width(const GatedDeltaNet& net, Buffer buffer) {
  if (buffer == Buffer::delta) return net.conv_width() + net.value_width();
  return buffer == Buffer::attention ? net.value_width() : 0;
}

// Priced, not run.
[[nodiscard]] int width(const CompressedAttention& /*attention*/, Buffer /*buffer*/) { return 0; }

}  // namespace

int width(const ModelShape& shape, const LayerKind& kind, Buffer buffer) {
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
    case Buffer::queries:
    case Buffer::expanded:
    case Buffer::latent_queries:
    case Buffer::latent_outputs:
    case Buffer::delta:
    case Buffer::attention:
      return std::visit([buffer](const auto& attention) { return width(attention, buffer); }, kind.attention);
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

const Mla& latents_of(const Op& op, const ModelShape& shape) {
  const Mla* const attention = layer_of(op, shape).mla();
  require(attention != nullptr, op, "is of latent attention, which the layer does not have");
  return *attention;
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
