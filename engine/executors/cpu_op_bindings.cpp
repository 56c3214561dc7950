// An op of a plan as a call of the CPU kernels: the weights in its slot, the buffers that it reads and writes.
#include <algorithm>
#include <cstring>

#include "engine/executors/cpu_executor.hpp"
#include "engine/executors/plan_walk.hpp"

namespace dculab::engine {

int CpuExecutor::rows_of(const Op& op) const {
  return op.stage == Stage::after_layers ? static_cast<int>(inputs_.logits_tokens().size()) : inputs_.num_tokens();
}

void CpuExecutor::execute_norm(const Op& op, int layer) {
  const ModelShape& shape = weights_.shape;
  const SlotWeights& bound = weights_.in(op.weight, layer);
  require(bound.count == 1 && bound.columns == 0, op, "is not a norm of this model");
  require(op.m == rows_of(op) && op.n == shape.hidden_size, op, "has another shape");
  require((op.kind == OpKind::layer_norm) == (shape.norm == NormKind::layer_norm), op, "is another kind of norm");
  require_buffers(op, shape);
  if (op.stage == Stage::after_layers) keep_logits_rows();
  const bool adds = layer > 0 || !op.adds_layer_before;
  const auto added = [&](std::size_t which) { return adds ? values(op.added[which]) : nullptr; };
  const auto epsilon = static_cast<float>(shape.norm_eps);
  require(op.kind == OpKind::layer_norm || op.added[1] == Buffer::none, op, "adds more than its kernel does");
  if (op.kind == OpKind::rms_norm)
    return kernels::cpu::rms_norm(threads_, {.x = added(0),
                                             .residual = values(op.input),
                                             .weight = bound.weights[0],
                                             .out = values(op.output),
                                             .num_tokens = rows_of(op),
                                             .width = shape.hidden_size,
                                             .epsilon = epsilon,
                                             .weight_offset = shape.unit_offset_norms ? 1.0F : 0.0F});
  kernels::cpu::layer_norm(threads_, {.weight = f32_values(bound.weights[0]),
                                      .bias = f32_values(bound.biases[0]),
                                      .out = values(op.output),
                                      .num_tokens = rows_of(op),
                                      .width = shape.hidden_size,
                                      .epsilon = epsilon,
                                      .residual = values(op.input),
                                      .added = {added(0), added(1)}});
}

void CpuExecutor::execute_activation(const Op& op) {
  const LayerKind& layer = layer_of(op, weights_.shape);
  const bool of_experts = op.input == Buffer::expert_up;
  const ActivationKind activation = of_experts ? layer.experts->activation : layer.mlp.activation;
  const int tokens = of_experts && has_expert_part(op) ? expert_exchange_.num_rows()
                                                       : tokens_of(op).count * rows_per_token(layer, op.input);
  const int columns = width(weights_.shape, layer, op.output);
  require_rows(op, tokens);
  require(op.n == columns, op, "has another shape");
  if (tokens == 0) return;
  const bool gelu = is_gelu(activation), gated = of_experts || layer.mlp.kind == MlpKind::gated;
  require(gelu || (gated && activation == ActivationKind::silu), op, "has no kernel");
  if (!gelu)
    return kernels::cpu::silu_mul(
        threads_, {.gate_up = values(op.input), .out = values(op.output), .num_tokens = tokens, .width = columns});
  const bool tanh = activation == ActivationKind::gelu_tanh;
  if (gated)
    return kernels::cpu::gelu_mul(threads_, {.gate_up = values(op.input),
                                             .out = values(op.output),
                                             .num_tokens = tokens,
                                             .width = columns,
                                             .kind = tanh ? kernels::GeluKind::tanh : kernels::GeluKind::erf});
  kernels::cpu::gelu(threads_, {.x = values(op.input),
                                .out = values(op.output),
                                .count = std::int64_t{tokens} * columns,
                                .kind = tanh ? kernels::GeluKind::tanh : kernels::GeluKind::erf});
}

void CpuExecutor::execute_qk_norm(const Op& op, int layer) {
  const ModelShape& shape = weights_.shape;
  const Gqa& attention = layer_of(op, shape).gqa();
  const Heads& heads = attention.heads;
  const SlotWeights& bound = weights_.in(op.weight, layer);
  require(bound.count == 2 && op.m == inputs_.num_tokens() && op.n == heads.query_width() + heads.kv_width(), op,
          "has another shape");
  const bool whole = attention.qk_norm == QkNorm::whole;
  if (whole && place_.is_divided()) return sum_squares(op);
  const int stride = heads.query_width() + 2 * heads.kv_width();
  const auto norm = [&](std::size_t part, int first, int num_heads) {
    kernels::cpu::head_norm(threads_, {.x = values(op.input) + first,
                                       .stride = stride,
                                       .weight = bound.weights[part],
                                       .num_tokens = inputs_.num_tokens(),
                                       .num_heads = whole ? 1 : num_heads,
                                       .head_dim = whole ? num_heads * heads.head_dim : heads.head_dim,
                                       .epsilon = static_cast<float>(shape.norm_eps),
                                       .weight_offset = shape.unit_offset_norms ? 1.0F : 0.0F});
  };
  norm(kQ, 0, heads.num_attention_heads);
  norm(kK, heads.query_width(), heads.num_key_value_heads);
}

void CpuExecutor::execute_residual_add(const Op& op, int layer) {
  const int tokens = inputs_.num_tokens();
  require(op.m == tokens, op, "has another shape");
  require_buffers(op, weights_.shape);
  const bool adds = layer > 0 || !op.adds_layer_before;
  kernels::cpu::residual_add(threads_, {.x = adds ? values(op.added[0]) : nullptr,
                                        .residual = values(op.input),
                                        .out = values(op.output),
                                        .count = std::int64_t{tokens} * op.n});
}

void CpuExecutor::execute_soft_cap(const Op& op) {
  require(op.m == rows_of(op), op, "has another shape");
  require_buffers(op, weights_.shape);
  kernels::cpu::soft_cap(
      threads_,
      {.x = values(op.input), .count = op.m * op.n, .cap = static_cast<float>(weights_.shape.final_logit_soft_cap)});
}

// Moves the rows whose logits are wanted to the front. They are in order, so no row is overwritten before it is read.
void CpuExecutor::keep_logits_rows() {
  const auto columns = static_cast<std::size_t>(weights_.shape.hidden_size);
  std::size_t row = 0;
  for (const std::int32_t token : inputs_.logits_tokens()) {
    const auto source = static_cast<std::size_t>(token);
    if (source != row)
      for (const Buffer buffer : {Buffer::residual, Buffer::projected, Buffer::mlp_projected})
        if (width(weights_.shape, buffer) > 0)
          std::memcpy(values(buffer) + row * columns, values(buffer) + source * columns, columns * sizeof(float));
    ++row;
  }
}

kernels::MatmulArgs CpuExecutor::bind_matmul(const Op& op, int layer) const {
  const SlotWeights& bound = weights_.in(op.weight, layer);
  require(bound.count > 0 && bound.columns > 0, op, "is not a matrix of this model");
  kernels::MatmulArgs args;
  args.k = bound.columns;
  args.num_weights = bound.count;
  std::copy_n(bound.weights.begin(), bound.count, args.weights.begin());
  std::ranges::transform(bound.biases, args.biases.begin(), f32_values);
  args.activations = op.activations;
  int rows = 0;
  for (const kernels::WeightView& weight : args.weights) rows += weight.rows;
  require(op.n == rows && op.k == args.k, op, "has another shape than its weights");
  for (int i = 0; i < args.num_weights; ++i) {
    const kernels::WeightView& weight = args.weights[static_cast<std::size_t>(i)];
    require(op.weight_format == WeightFormat{weight.dtype, weight.group_size}, op,
            "is planned in another format than its weights");
  }
  return args;
}

void CpuExecutor::execute_matmul(const Op& op, int layer) {
  kernels::MatmulArgs args = bind_matmul(op, layer);
  const OwnTokens own = tokens_of(op);
  args.y = values(op.output, own);
  args.m = own.count;
  require_rows(op, args.m);
  if (args.m == 0) return;
  if (op.weight == WeightSlot::q_b_proj) {
    args.x = gathered_query_latents(op);
  } else {
    args.x = values(op.input, own);
    require_buffers(op, weights_.shape);
    observe(op, layer);
  }
  kernels::cpu::matmul(threads_, workspace_, args);
}

}  // namespace dculab::engine
