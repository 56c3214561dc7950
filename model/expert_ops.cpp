// Ops of a mixture of experts.
#include <algorithm>
#include <cmath>

#include "model/decoder_ops.hpp"
#include "model/expert_shard.hpp"

namespace dculab {
namespace {

constexpr double kIndexBytes = 4;  // of a chosen expert, and of a row's place

[[nodiscard]] const Experts& experts_of(const StepSizes& sizes) { return *sizes.layer().experts; }

[[nodiscard]] std::int64_t whole(double count) { return std::max<std::int64_t>(1, std::llround(count)); }

// Tokens whose experts are chosen here, and whose experts' outputs are summed here.
[[nodiscard]] std::int64_t own_tokens(const StepSizes& sizes) {
  return experts_of(sizes).part ? whole(sizes.expert_rows->own_tokens) : sizes.tokens;
}

// Rows that experts get: one for each token and each of its experts.
[[nodiscard]] std::int64_t rows_of(const StepSizes& sizes) {
  const Experts& experts = experts_of(sizes);
  return experts.part ? whole(sizes.expert_rows->rows) : sizes.tokens * experts.num_experts_per_tok;
}

// Those that the tokens here ask for, and get back.
[[nodiscard]] std::int64_t asked_rows(const StepSizes& sizes) {
  const Experts& experts = experts_of(sizes);
  return experts.part ? whole(sizes.expert_rows->own_tokens * experts.part->rows_per_token)
                      : sizes.tokens * experts.num_experts_per_tok;
}

[[nodiscard]] GroupedWork groups_of(const StepSizes& sizes) {
  const ExpertRows& rows = *sizes.expert_rows;
  return {
      .count = experts_of(sizes).held(), .touched = rows.touched, .longest_rows = rows.longest, .tiles = rows.tiles};
}

}  // namespace

// The weights of the experts that get a row are read once each. The rows of the first product are those of the tokens,
// each of which goes to several experts.
Op plan_expert_matmul(const OpPlace& place, const StepSizes& sizes, int n, int k) {
  const Experts& experts = experts_of(sizes);
  Op op = plan_matmul(place, sizes, sizes.format_of(place.weight), rows_of(sizes), n, k, bias_if(experts.bias));
  op.groups = groups_of(sizes);
  for (Operand& operand : op.operand_storage) {
    if (operand.role == OperandRole::weight) operand.unique *= op.groups.touched;
    if (operand.role == OperandRole::activation && place.input == Buffer::normed)
      operand.unique = activations(sizes, sizes.expert_rows->tokens * k);
  }
  return op;
}

// A softmax of the logits, the choice of the best, and a sort of the rows by expert: about 10 FLOP a logit.
Op plan_route(const StepSizes& sizes) {
  const Experts& experts = experts_of(sizes);
  const std::int64_t tokens = own_tokens(sizes);
  Op op = make_op(OpKind::route_tokens, {.name = "route_tokens", .input = Buffer::router_logits}, sizes, tokens,
                  experts.num_experts);
  const double logits = static_cast<double>(tokens) * experts.num_experts;
  const auto rows = static_cast<double>(asked_rows(sizes));
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
  const std::int64_t tokens = own_tokens(sizes);
  Op op = make_op(OpKind::combine_experts,
                  {.name = "combine_experts", .input = Buffer::expert_output, .output = Buffer::projected}, sizes,
                  tokens, width);
  const double values = static_cast<double>(tokens) * width, rows = static_cast<double>(asked_rows(sizes));
  op.flops = FlopCount(2 * rows * width + (shared ? 2 * values : 0));
  op.add({OperandRole::activation, activations(sizes, rows * width + (shared ? values : 0)) + storage(Dtype::f32, rows),
          activations(sizes, width)});
  op.add({OperandRole::output, activations(sizes, values), activations(sizes, width)});
  return op;
}

// The rows that go are the own tokens'; those that come are of all devices.
Op plan_token_exchange(OpKind kind, const StepSizes& sizes) {
  const ExpertPart& part = *experts_of(sizes).part;
  const ExpertRows& rows = *sizes.expert_rows;
  const int width = sizes.model.hidden_size;
  const bool dispatches = kind == OpKind::dispatch_tokens;
  Op op = make_op(kind, {.name = dispatches ? "dispatch" : "combine"}, sizes, own_tokens(sizes), width);
  const bool is_sent_whole = part.dispatch_dtype == Dtype::f32;
  op.activation_dtype = dispatches || is_sent_whole ? part.dispatch_dtype : Dtype::bf16;
  op.devices = part.devices;
  op.exchange = {.devices_per_node = part.devices_per_node,
                 .expert_rows = rows.rows,
                 .device_tokens = rows.tokens,
                 .node_copies = rows.own_tokens * part.other_nodes};
  const Bytes sent = storage(op.activation_dtype, static_cast<double>(op.m) * width);
  const Bytes received = storage(op.activation_dtype, rows.tokens * width), run = storage(op.activation_dtype, width);
  op.add({OperandRole::activation, dispatches ? sent : received, run});
  op.add({OperandRole::output, dispatches ? received : sent, run});
  return op;
}

}  // namespace dculab
