// An op of a plan as a call of the GPU kernels: the weights in its slot, the buffers that it reads and writes.
#include "engine/executors/gpu_executor.hpp"
#include "engine/executors/plan_walk.hpp"
#include "engine/step/gpu_attention.hpp"

namespace dculab::engine {

using kernels::gpu::Input;
using kernels::gpu::Output;

int GpuExecutor::rows_of(const Op& op) const {
  return op.stage == Stage::after_layers ? static_cast<int>(inputs_.logits_tokens().size()) : inputs_.num_tokens();
}

Input GpuExecutor::input(Buffer buffer) const {
  const bool f32 = buffer == Buffer::residual || buffer == Buffer::logits || buffer == Buffer::router_logits;
  return {activations_[buffer].as(), f32 ? Dtype::f32 : options_.activation_dtype};
}

Output GpuExecutor::output(Buffer buffer) const { return {activations_[buffer].as(), input(buffer).dtype}; }

Output GpuExecutor::at(Buffer buffer, std::int64_t value) const { return offset_by(output(buffer), value); }

void GpuExecutor::execute_norm(const Op& op, int layer) {
  const GpuNorm& weights = weights_.in(op.weight, layer).norm;
  require(weights.weight.data != nullptr, op, "is not a norm of this model");
  require(op.m == rows_of(op) && op.n == shape_.hidden_size, op, "has another shape");
  require((op.kind == OpKind::layer_norm) == (shape_.norm == NormKind::layer_norm), op, "is another kind of norm");
  require_buffers(op, shape_);
  if (op.stage == Stage::after_layers) keep_logits_rows();
  const auto epsilon = static_cast<float>(shape_.norm_eps);
  const bool adds = layer > 0 || !op.adds_layer_before;
  const auto added = [&](std::size_t which) { return input(adds ? op.added[which] : Buffer::none); };
  if (op.kind == OpKind::rms_norm && op.input != Buffer::residual) {
    require(op.input == op.output && op.added[0] == Buffer::none, op, "is no norm in place");
    return device_->head_norm({.x = output(op.output),
                               .stride = shape_.hidden_size,
                               .weight = weights.weight,
                               .num_tokens = rows_of(op),
                               .num_heads = 1,
                               .head_dim = shape_.hidden_size,
                               .epsilon = epsilon});
  }
  if (op.kind == OpKind::rms_norm)
    return device_->rms_norm({.x = added(0),
                              .residual = activations_[op.input].as<float>(),
                              .weight = weights.weight,
                              .out = output(op.output),
                              .num_tokens = rows_of(op),
                              .width = shape_.hidden_size,
                              .epsilon = epsilon});
  device_->layer_norm({.x = {nullptr, Dtype::f32},
                       .weight = weights.weight,
                       .bias = weights.bias,
                       .out = output(op.output),
                       .num_tokens = rows_of(op),
                       .width = shape_.hidden_size,
                       .epsilon = epsilon,
                       .residual = activations_[op.input].as<float>(),
                       .added = {added(0), added(1)}});
}

void GpuExecutor::execute_activation(const Op& op) {
  const LayerKind& layer = layer_of(op, shape_);
  const bool of_experts = op.input == Buffer::expert_up;
  const ActivationKind activation = of_experts ? layer.experts->activation : layer.mlp.activation;
  const int tokens = inputs_.num_tokens() * rows_per_token(layer, op.input);
  const int columns = width(shape_, layer, op.output);
  require(op.m == tokens && op.n == columns, op, "has another shape");
  const bool gelu = is_gelu(activation), gated = of_experts || layer.mlp.kind == MlpKind::gated;
  require(gelu || (gated && activation == ActivationKind::silu), op, "has no kernel");
  if (!gelu)
    return device_->silu_and_mul(
        {.gate_up = input(op.input), .out = output(op.output), .num_tokens = tokens, .width = columns});
  const bool tanh = activation == ActivationKind::gelu_tanh;
  if (gated)
    return device_->gelu_and_mul({.gate_up = input(op.input),
                                  .out = output(op.output),
                                  .num_tokens = tokens,
                                  .width = columns,
                                  .kind = tanh ? kernels::GeluKind::tanh : kernels::GeluKind::erf});
  device_->gelu({.x = input(op.input),
                 .out = output(op.output),
                 .count = std::int64_t{tokens} * columns,
                 .kind = tanh ? kernels::GeluKind::tanh : kernels::GeluKind::erf});
}

void GpuExecutor::execute_qk_norm(const Op& op, int layer) {
  const Gqa& attention = layer_of(op, shape_).gqa();
  const Heads& heads = attention.heads;
  require(op.m == inputs_.num_tokens() && op.n == heads.query_width() + heads.kv_width(), op, "has another shape");
  const std::array<Input, 2>& weights = weights_.in(op.weight, layer).parts;
  require(weights[kQ].data != nullptr && weights[kK].data != nullptr, op, "has no weights");
  const bool whole = attention.qk_norm == QkNorm::whole;
  const Dtype dtype = options_.activation_dtype;
  const auto norm = [&](std::size_t part, int first, int num_heads) {
    device_->head_norm({.x = {activations_[op.input].as<std::byte>() + first * bits(dtype) / 8, dtype},
                        .stride = heads.query_width() + 2 * heads.kv_width(),
                        .weight = weights[part],
                        .num_tokens = inputs_.num_tokens(),
                        .num_heads = whole ? 1 : num_heads,
                        .head_dim = whole ? num_heads * heads.head_dim : heads.head_dim,
                        .epsilon = static_cast<float>(shape_.norm_eps)});
  };
  norm(kQ, 0, heads.num_attention_heads);
  norm(kK, heads.query_width(), heads.num_key_value_heads);
}

void GpuExecutor::execute_residual_add(const Op& op, int layer) {
  require(op.m == inputs_.num_tokens(), op, "has another shape");
  require_buffers(op, shape_);
  const bool adds = layer > 0 || !op.adds_layer_before;
  device_->residual_add({.x = input(adds ? op.added[0] : Buffer::none),
                         .residual = activations_[op.input].as<float>(),
                         .out = output(op.output),
                         .count = op.m * op.n});
}

void GpuExecutor::execute_soft_cap(const Op& op) {
  require(op.m == rows_of(op), op, "has another shape");
  require_buffers(op, shape_);
  device_->soft_cap(
      {.x = output(op.output), .count = op.m * op.n, .cap = static_cast<float>(shape_.final_logit_soft_cap)});
}

// Moves the rows whose logits are wanted to the front. They are in order, so no row is overwritten before it is read.
void GpuExecutor::keep_logits_rows() {
  const auto move_row = [&](Buffer buffer, std::size_t to, std::size_t from) {
    const Input rows = input(buffer);
    const std::size_t bytes =
        static_cast<std::size_t>(width(shape_, buffer)) * static_cast<std::size_t>(bits(rows.dtype)) / 8;
    auto* const first = activations_[buffer].as<std::byte>();
    if (bytes > 0) device_->copy(first + to * bytes, first + from * bytes, bytes);
  };
  std::size_t row = 0;
  for (const std::int32_t token : inputs_.logits_tokens()) {
    const auto source = static_cast<std::size_t>(token);
    if (source != row)
      for (const Buffer buffer : {Buffer::residual, Buffer::projected, Buffer::mlp_projected})
        move_row(buffer, row, source);
    ++row;
  }
}

void GpuExecutor::execute_matmul(const Op& op, int layer) {
  const GpuMatrix& weights = weights_.in(op.weight, layer).matrix;
  require(weights.rows > 0, op, "is not a matrix of this model");
  require(op.m == rows_of(op) && op.n == weights.rows && op.k == weights.columns, op,
          "has another shape than its weights");
  require(op.weight_format == weights.format, op, "is planned in another format than its weights");
  const bool is_int8 = weights.format.dtype == Dtype::int8;
  require(op.activations == (is_int8 ? ActivationMode::int8 : ActivationMode::exact), op,
          "is planned with other activations than its kernel takes");
  // Queries come from their latent, which is the first part of a row.
  const bool of_part = op.weight == WeightSlot::q_b_proj;
  if (!of_part) require_buffers(op, shape_);
  require(split_k_floats(weights.format.dtype, rows_of(op), weights.rows, weights.columns) <= workspace_floats_, op,
          "needs a larger workspace");
  if (is_int8) return multiply_int8(op, weights);
  if (weights.format.dtype == Dtype::int4)
    return device_->gptq_matmul({.x = input(op.input),
                                 .weight = weights.gptq,
                                 .x_perm = weights.x_perm,
                                 .y = output(op.output),
                                 .m = rows_of(op),
                                 .y_stride = weights.rows,
                                 .workspace = workspace_.as<float>(),
                                 .bias = weights.bias});
  device_->matmul({.x = input(op.input),
                   .w = weights.values,
                   .y = output(op.output),
                   .m = rows_of(op),
                   .n = weights.rows,
                   .k = weights.columns,
                   .y_stride = weights.rows,
                   .workspace = workspace_.as<float>(),
                   .bias = weights.bias,
                   .x_stride = of_part ? width(shape_, layer_of(op, shape_), op.input) : weights.columns,
                   .scales = weights.scales});
}

void GpuExecutor::multiply_int8(const Op& op, const GpuMatrix& weights) {
  device_->quantize_rows({.x = input(op.input),
                          .out = activations_.quantized.as<std::int8_t>(),
                          .scale = activations_.quantized_scales.as<float>(),
                          .m = rows_of(op),
                          .k = weights.columns});
  device_->int8_matmul({.x = activations_.quantized.as<std::int8_t>(),
                        .x_scale = activations_.quantized_scales.as<float>(),
                        .w = weights.int8_values,
                        .w_scale = weights.int8_scales,
                        .y = output(op.output),
                        .m = rows_of(op),
                        .n = weights.rows,
                        .k = weights.columns,
                        .y_stride = weights.rows,
                        .bias = weights.bias});
}

}  // namespace dculab::engine
