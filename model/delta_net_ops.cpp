// Ops of a gated delta net.
// Source: Gated Delta Networks, arXiv:2412.06464, section 3; flash-linear-attention, fla/ops/gated_delta_rule.
#include "model/decoder_ops.hpp"

namespace dculab {
namespace {

// Each value of Q, K and V from those of the newest tokens, of which a sequence keeps all but one, and its activation.
[[nodiscard]] Op plan_conv(const StepSizes& sizes, const GatedDeltaNet& net, double sequences) {
  Op op = make_op(OpKind::causal_conv, {"causal_conv", WeightSlot::delta_conv, Buffer::delta, Buffer::delta}, sizes,
                  sizes.tokens, net.conv_width());
  const double values = static_cast<double>(sizes.tokens) * net.conv_width();
  const double kept = sequences * (net.conv_kernel - 1) * net.conv_width();
  op.flops = FlopCount((2.0 * net.conv_kernel + 5) * values);
  op.add({OperandRole::weight, storage(sizes.model.dtype, static_cast<double>(net.conv_width()) * net.conv_kernel),
          storage(sizes.model.dtype, net.conv_kernel)});
  op.add({OperandRole::activation, activations(sizes, values + kept), activations(sizes, net.conv_width())});
  op.add({OperandRole::output, activations(sizes, values + kept), activations(sizes, net.conv_width())});
  return op;
}

// FLOP of a token and value head, state [k, v]. One by one: decay the state (1), what it holds of the key (2), correct
// it (2), read it (2). In chunks of C tokens: products of K and K, Q and K, of the C x C factors with K, V and V, the
// factors' inverse (C^2 / 3), and three products with the state.
[[nodiscard]] double flops_of_token(const GatedDeltaNet& net, Phase phase) {
  const double k = net.key_head_dim, v = net.value_head_dim;
  if (phase == Phase::decode) return 7 * k * v;
  return 2 * kDeltaChunk * (3 * k + 2 * v) + kDeltaChunk * kDeltaChunk / 3 + 6 * k * v;
}

// The state of a sequence is read once and written once.
[[nodiscard]] Op plan_rule(const StepSizes& sizes, const GatedDeltaNet& net, Phase phase, const PhaseTokens& work) {
  const auto tokens = static_cast<double>(work.added), sequences = static_cast<double>(work.sequences);
  Op op = make_op(OpKind::delta_rule,
                  {.name = phase == Phase::decode ? "delta_rule_decode" : "delta_rule_prefill",
                   .input = Buffer::delta,
                   .output = Buffer::attention},
                  sizes, work.added, net.value_width());
  const Bytes head = storage(Dtype::f32, static_cast<double>(net.key_head_dim) * net.value_head_dim);
  const Bytes states = storage(Dtype::f32, sequences * net.state_values());
  op.flops = FlopCount(tokens * net.num_value_heads * flops_of_token(net, phase));
  op.add({OperandRole::kv_read, states, head});
  op.add({OperandRole::activation,
          activations(sizes, tokens * net.conv_width()) + storage(Dtype::f32, 2 * tokens * net.num_value_heads),
          activations(sizes, net.key_head_dim)});
  op.add({OperandRole::output, activations(sizes, tokens * net.value_width()), activations(sizes, net.value_head_dim)});
  op.add({OperandRole::kv_write, states, head});
  op.attention = {.num_sequences = static_cast<int>(work.sequences),
                  .num_query_heads = net.num_key_heads,
                  .num_kv_heads = net.num_value_heads,
                  .head_dim = net.key_head_dim,
                  .value_dim = net.value_head_dim,
                  .kv_dtype = Dtype::f32,
                  .is_paged = false,
                  .query_tokens = tokens};
  return op;
}

// The RMS norm of each head's output, times the activation of the gate: 3 and 6 FLOP a value.
[[nodiscard]] Op plan_gated_norm(const StepSizes& sizes, const GatedDeltaNet& net) {
  Op op = make_op(OpKind::gated_norm, {"gated_norm", WeightSlot::delta_norm, Buffer::delta, Buffer::attention}, sizes,
                  sizes.tokens, net.value_width());
  const double values = static_cast<double>(sizes.tokens) * net.value_width();
  const Bytes weight = storage(sizes.model.dtype, net.value_head_dim);
  op.flops = FlopCount(9 * values);
  op.add({OperandRole::weight, weight, weight});
  op.add({OperandRole::activation, activations(sizes, 2 * values), activations(sizes, net.value_head_dim)});
  op.add({OperandRole::output, activations(sizes, values), activations(sizes, net.value_head_dim)});
  return op;
}

}  // namespace

void plan_delta_net(StepPlan& plan, const StepSizes& sizes) {
  const GatedDeltaNet& net = *sizes.layer().delta_net();
  const WeightFormat format = sizes.format_of(WeightSlot::o_proj);
  const int hidden = sizes.model.hidden_size;
  const PhaseTokens prefill = tokens_of(plan.batch, Phase::prefill), decode = tokens_of(plan.batch, Phase::decode);
  plan.ops.push_back(plan_matmul({"delta_proj", WeightSlot::delta_proj, Buffer::normed, Buffer::delta}, sizes, format,
                                 sizes.tokens, net.conv_width() + net.value_width(), hidden));
  plan.ops.push_back(plan_matmul({"delta_gates", WeightSlot::delta_gates, Buffer::normed, Buffer::delta}, sizes, format,
                                 sizes.tokens, 2 * net.num_value_heads, hidden));
  plan.ops.push_back(plan_conv(sizes, net, static_cast<double>(prefill.sequences + decode.sequences)));
  if (prefill.added > 0) plan.ops.push_back(plan_rule(sizes, net, Phase::prefill, prefill));
  if (decode.added > 0) plan.ops.push_back(plan_rule(sizes, net, Phase::decode, decode));
  plan.ops.push_back(plan_gated_norm(sizes, net));
  plan.ops.push_back(plan_matmul({"o_proj", WeightSlot::o_proj, Buffer::attention, Buffer::projected}, sizes, format,
                                 sizes.tokens, hidden, net.value_width()));
}

}  // namespace dculab
