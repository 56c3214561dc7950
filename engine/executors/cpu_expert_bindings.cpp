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
  const OwnTokens own = tokens_of(op);
  require_rows(op, own.count);
  require(op.n == experts.num_experts, op, "has another shape");
  if (own.count == 0) return;
  std::int32_t bad_tokens = 0;
  const kernels::WeightView& bias = weights_.in(WeightSlot::router, layer).weights[kCorrectionBias];
  kernels::cpu::route_tokens(threads_, workspace_,
                             {.logits = values(op.input),
                              .correction_bias = experts.correction_bias ? f32_values(bias) : nullptr,
                              .rule = router_rule(experts),
                              .choices = routing_.choices(),
                              .bad_tokens = &bad_tokens,
                              .num_tokens = own.count});
  require_routed(bad_tokens, layer);
  if (!has_expert_part(op)) routing_.count(layer, experts);
}

void CpuExecutor::execute_expert_matmul(const Op& op, int layer) {
  const Experts& experts = experts_of(op, weights_.shape);
  const SlotWeights& bound = weights_.in(op.weight, layer);
  const bool is_part = has_expert_part(op), begins = op.input == Buffer::normed;
  const int rows = is_part ? expert_exchange_.num_rows() : inputs_.num_tokens() * experts.num_experts_per_tok;
  const kernels::ExpertChoices choices = routing_.choices();
  kernels::ExpertMatmulArgs args;
  args.x = is_part && begins ? expert_exchange_.tokens() : values(op.input);
  args.row_tokens = !begins ? nullptr : is_part ? expert_exchange_.row_tokens() : choices.row_tokens;
  args.first_rows = is_part ? expert_exchange_.first_rows() : choices.first_rows;
  args.y = values(op.output);
  args.num_experts = experts.held(), args.num_weights = bound.count, args.k = bound.columns;
  args.activations = op.activations;
  int columns = 0;
  for (std::size_t part = 0; part < static_cast<std::size_t>(bound.count); ++part) {
    const std::vector<kernels::WeightView>& weights = bound.expert_weights[part];
    require(std::ssize(weights) == experts.held(), op, "is not of this model's experts");
    require(op.weight_format == WeightFormat{weights[0].dtype, weights[0].group_size}, op,
            "is planned in another format than its weights");
    args.weights[part] = weights.data();
    args.biases[part] = bound.expert_biases[part].empty() ? nullptr : bound.expert_biases[part].data();
    columns += weights[0].rows;
  }
  require_rows(op, rows);
  require(op.n == columns && op.k == args.k, op, "has another shape than its weights");
  require_buffers(op, weights_.shape);
  if (rows == 0) return;
  observe(op, layer);
  kernels::cpu::expert_matmul(threads_, workspace_, gathered_rows_, args);
}

void CpuExecutor::execute_combine(const Op& op, int layer) {
  const Experts& experts = experts_of(op, weights_.shape);
  const OwnTokens own = tokens_of(op);
  require_rows(op, own.count);
  require_buffers(op, weights_.shape);
  if (own.count == 0) return;
  const kernels::ExpertChoices choices = routing_.choices();
  const SlotWeights& gate = weights_.in(WeightSlot::shared_gate, layer);
  kernels::cpu::combine_experts(threads_, {.y = has_expert_part(op) ? expert_exchange_.returned() : values(op.input),
                                           .choice_rows = choices.choice_rows,
                                           .weights = choices.weights,
                                           .out = values(op.output, own),
                                           .num_tokens = own.count,
                                           .width = weights_.shape.hidden_size,
                                           .experts_per_token = experts.num_experts_per_tok,
                                           .has_shared = layer_of(op, weights_.shape).mlp.intermediate_size > 0,
                                           .x = values(Buffer::normed, own),
                                           .shared_gate = gate.weights[0],
                                           .gate_width = gate.columns});
}

}  // namespace dculab::engine
