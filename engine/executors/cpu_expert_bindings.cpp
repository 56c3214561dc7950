// Ops of a mixture of experts as calls of the CPU kernels.
#include "engine/executors/cpu_executor.hpp"
#include "engine/executors/plan_walk.hpp"
#include "kernels/cpu/expert_kernels.hpp"

namespace dculab::engine {
namespace {

[[nodiscard]] const Experts& experts_of(const Op& op, const ModelShape& shape) {
  const LayerKind& kind = layer_of(op, shape);
  require(kind.experts.has_value(), op, "is of experts that the model does not have");
  return *kind.experts;
}

}  // namespace

void CpuExecutor::execute_route(const Op& op, int layer) {
  const Experts& experts = experts_of(op, weights_.shape);
  require(op.m == inputs_.num_tokens() && op.n == experts.num_experts, op, "has another shape");
  std::int32_t bad_tokens = 0;
  const kernels::WeightView& bias = weights_.in(WeightSlot::router, layer).weights[kCorrectionBias];
  kernels::cpu::route_tokens(threads_, workspace_,
                             {.logits = values(op.input),
                              .correction_bias = experts.correction_bias ? f32_values(bias) : nullptr,
                              .rule = router_rule(experts),
                              .choices = routing_.choices(),
                              .bad_tokens = &bad_tokens,
                              .num_tokens = inputs_.num_tokens()});
  require_routed(bad_tokens, layer);
  routing_.count(layer, experts);
}

void CpuExecutor::execute_expert_matmul(const Op& op, int layer) {
  const Experts& experts = experts_of(op, weights_.shape);
  const SlotWeights& bound = weights_.in(op.weight, layer);
  const int rows = inputs_.num_tokens() * experts.num_experts_per_tok;
  const kernels::ExpertChoices choices = routing_.choices();
  kernels::ExpertMatmulArgs args;
  args.x = values(op.input);
  args.row_tokens = op.input == Buffer::normed ? choices.row_tokens : nullptr;
  args.first_rows = choices.first_rows;
  args.y = values(op.output);
  args.num_experts = experts.num_experts, args.num_weights = bound.count, args.k = bound.columns;
  args.activations = op.activations;
  int columns = 0;
  for (std::size_t part = 0; part < static_cast<std::size_t>(bound.count); ++part) {
    const std::vector<kernels::WeightView>& weights = bound.expert_weights[part];
    require(std::ssize(weights) == experts.num_experts, op, "is not of this model's experts");
    require(op.weight_format == WeightFormat{weights[0].dtype, weights[0].group_size}, op,
            "is planned in another format than its weights");
    args.weights[part] = weights.data();
    args.biases[part] = bound.expert_biases[part].empty() ? nullptr : bound.expert_biases[part].data();
    columns += weights[0].rows;
  }
  require(op.m == rows && op.n == columns && op.k == args.k, op, "has another shape than its weights");
  require_buffers(op, weights_.shape);
  observe(op, layer);
  kernels::cpu::expert_matmul(threads_, workspace_, gathered_rows_, args);
}

void CpuExecutor::execute_combine(const Op& op, int layer) {
  const Experts& experts = experts_of(op, weights_.shape);
  require(op.m == inputs_.num_tokens() && op.n == weights_.shape.hidden_size, op, "has another shape");
  require_buffers(op, weights_.shape);
  const kernels::ExpertChoices choices = routing_.choices();
  const SlotWeights& gate = weights_.in(WeightSlot::shared_gate, layer);
  kernels::cpu::combine_experts(threads_, {.y = values(op.input),
                                           .choice_rows = choices.choice_rows,
                                           .weights = choices.weights,
                                           .out = values(op.output),
                                           .num_tokens = inputs_.num_tokens(),
                                           .width = weights_.shape.hidden_size,
                                           .experts_per_token = experts.num_experts_per_tok,
                                           .has_shared = layer_of(op, weights_.shape).mlp.intermediate_size > 0,
                                           .x = values(Buffer::normed),
                                           .shared_gate = gate.weights[0],
                                           .gate_width = gate.columns});
}

}  // namespace dculab::engine
