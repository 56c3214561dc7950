// Ops of a mixture of experts.
#include "model/decoder_ops.hpp"

namespace dculab {
namespace {

constexpr double kIndexBytes = 4;  // of a chosen expert, and of a row's place

[[nodiscard]] const Experts& experts_of(const StepSizes& sizes) { return *sizes.layer().experts; }

// Rows that experts get: one for each token and each of its experts.
[[nodiscard]] std::int64_t rows_of(const StepSizes& sizes) {
  return sizes.tokens * experts_of(sizes).num_experts_per_tok;
}

}  // namespace

// The weights of the experts that get a row are read once each. The rows of the first product are those of the tokens,
// each of which goes to several experts.
Op plan_expert_matmul(const OpPlace& place, const StepSizes& sizes, int n, int k) {
  const Experts& experts = experts_of(sizes);
  const ExpertLoad& load = sizes.options.expert_load;
  const auto tokens = static_cast<double>(sizes.tokens);
  Op op = plan_matmul(place, sizes, sizes.format_of(place.weight), rows_of(sizes), n, k, bias_if(experts.bias));
  op.groups = {.count = experts.num_experts,
               .touched = touched_experts(load, experts.num_experts, experts.num_experts_per_tok, tokens),
               .longest_rows = longest_expert(load, experts.num_experts, experts.num_experts_per_tok, tokens),
               .tiles = expert_tiles(load, experts.num_experts, experts.num_experts_per_tok, tokens)};
  for (Operand& operand : op.operand_storage) {
    if (operand.role == OperandRole::weight) operand.unique *= op.groups.touched;
    if (operand.role == OperandRole::activation && place.input == Buffer::normed)
      operand.unique = activations(sizes, tokens * k);
  }
  return op;
}

// A softmax of the logits, the choice of the best, and a sort of the rows by expert: about 10 FLOP a logit.
Op plan_route(const StepSizes& sizes) {
  const Experts& experts = experts_of(sizes);
  Op op = make_op(OpKind::route_tokens, {.name = "route_tokens", .input = Buffer::router_logits}, sizes, sizes.tokens,
                  experts.num_experts);
  const double logits = static_cast<double>(sizes.tokens) * experts.num_experts;
  const auto rows = static_cast<double>(rows_of(sizes));
  op.flops = FlopCount(10 * logits);
  op.add({OperandRole::activation, activations(sizes, logits), activations(sizes, experts.num_experts)});
  op.add({OperandRole::output, storage(Dtype::f32, rows) + Bytes(2 * kIndexBytes * rows), Bytes(kIndexBytes)});
  return op;
}

Op plan_expert_activation(const StepSizes& sizes) {
  const Experts& experts = experts_of(sizes);
  const bool gelu = is_gelu(experts.activation);
  const int width = experts.intermediate_size;
  Op op = make_op(OpKind::activation_mul,
                  {.name = gelu ? "experts_gelu_and_mul" : "experts_silu_and_mul",
                   .input = Buffer::expert_up,
                   .output = Buffer::expert_activated},
                  sizes, rows_of(sizes), width);
  const double values = static_cast<double>(op.m) * width;
  op.activation = gelu ? OpActivation::gelu_and_mul : OpActivation::silu_and_mul;
  op.flops = FlopCount((gelu ? 9.0 : 6.0) * values);
  op.add({OperandRole::activation, activations(sizes, 2 * values), activations(sizes, width)});
  op.add({OperandRole::output, activations(sizes, values), activations(sizes, width)});
  return op;
}

Op plan_combine(const StepSizes& sizes) {
  const int width = sizes.model.hidden_size;
  const bool shared = sizes.layer().mlp.intermediate_size > 0;
  Op op = make_op(OpKind::combine_experts,
                  {.name = "combine_experts", .input = Buffer::expert_output, .output = Buffer::projected}, sizes,
                  sizes.tokens, width);
  const double values = static_cast<double>(sizes.tokens) * width, rows = static_cast<double>(rows_of(sizes));
  op.flops = FlopCount(2 * rows * width + (shared ? 2 * values : 0));
  op.add({OperandRole::activation, activations(sizes, rows * width + (shared ? values : 0)) + storage(Dtype::f32, rows),
          activations(sizes, width)});
  op.add({OperandRole::output, activations(sizes, values), activations(sizes, width)});
  return op;
}

}  // namespace dculab
