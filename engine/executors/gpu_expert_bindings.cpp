// Ops of a mixture of experts as calls of the GPU kernels.
#include "engine/executors/gpu_executor.hpp"
#include "engine/executors/plan_walk.hpp"

namespace dculab::engine {

// Both products of a layer take the same tiles: those of int4 where either has such weights, which all kernels serve.
kernels::gpu::RouteTokens GpuExecutor::routed(const Op& op, int layer) const {
  const std::optional<Experts>& experts = layer_of(op, shape_).experts;
  require(experts.has_value(), op, "is of experts that the model does not have");
  Dtype weights = weights_.in(WeightSlot::expert_up_proj, layer).matrix.format.dtype;
  const Dtype down = weights_.in(WeightSlot::expert_down_proj, layer).matrix.format.dtype;
  if (down == Dtype::int4) weights = down;
  return routing_.route(*experts, layer, inputs_.num_tokens(), weights);
}

void GpuExecutor::execute_route(const Op& op, int layer) {
  kernels::gpu::RouteTokens args = routed(op, layer);
  require(op.m == args.num_tokens && op.n == args.rule.num_experts, op, "has another shape");
  args.logits = input(op.input);
  args.correction_bias = weights_.in(WeightSlot::router, layer).correction_bias;
  routing_.expect(layer);
  device_->route_tokens(args);
}

void GpuExecutor::execute_expert_matmul(const Op& op, int layer) {
  const GpuMatrix& weights = weights_.in(op.weight, layer).matrix;
  const kernels::gpu::RouteTokens routed_tokens = routed(op, layer);
  const bool gathers = op.input == Buffer::normed;
  const int tokens = inputs_.num_tokens(), rows = tokens * routed_tokens.rule.experts_per_token;
  require(weights.experts == routed_tokens.rule.num_experts, op, "is not of this model's experts");
  require(op.m == rows && op.n == weights.rows && op.k == weights.columns, op, "has another shape than its weights");
  require(op.weight_format == weights.format, op, "is planned in another format than its weights");
  require(op.activations == ActivationMode::exact, op, "is planned with other activations than its kernel takes");
  require_buffers(op, shape_);
  const kernels::gpu::ExpertRows expert_rows = routing_.rows(routed_tokens, gathers);
  if (weights.format.dtype == Dtype::int4)
    return device_->expert_gptq_matmul({.x = input(op.input),
                                        .weight = weights.gptq,
                                        .x_perm = weights.x_perm,
                                        .y = output(op.output),
                                        .rows = expert_rows,
                                        .x_rows = gathers ? tokens : rows,
                                        .bias = weights.bias});
  device_->expert_matmul({.x = input(op.input),
                          .w = weights.values,
                          .y = output(op.output),
                          .rows = expert_rows,
                          .x_rows = gathers ? tokens : rows,
                          .n = weights.rows,
                          .k = weights.columns,
                          .bias = weights.bias,
                          .scales = weights.scales});
}

// The gate of the shared experts is a product of its own, as wide as one value.
void GpuExecutor::execute_combine(const Op& op, int layer) {
  const kernels::gpu::RouteTokens routed_tokens = routed(op, layer);
  require(op.m == inputs_.num_tokens() && op.n == shape_.hidden_size, op, "has another shape");
  require_buffers(op, shape_);
  const GpuMatrix& gate = weights_.in(WeightSlot::shared_gate, layer).matrix;
  const bool has_shared = layer_of(op, shape_).mlp.intermediate_size > 0, has_gate = has_shared && gate.rows > 0;
  if (has_gate)
    device_->matmul({.x = input(Buffer::normed),
                     .w = gate.values,
                     .y = {routing_.shared_gate(), Dtype::f32},
                     .m = inputs_.num_tokens(),
                     .n = gate.rows,
                     .k = gate.columns,
                     .y_stride = gate.rows});
  const kernels::gpu::Input shared = input(op.output);
  device_->combine_experts({.y = input(op.input),
                            .choice_rows = routed_tokens.choices.choice_rows,
                            .weights = routed_tokens.choices.weights,
                            .shared = {has_shared ? shared.data : nullptr, shared.dtype},
                            .shared_gate = {has_gate ? routing_.shared_gate() : nullptr, Dtype::f32},
                            .out = output(op.output),
                            .num_tokens = inputs_.num_tokens(),
                            .width = shape_.hidden_size,
                            .experts_per_token = routed_tokens.rule.experts_per_token});
}

}  // namespace dculab::engine
