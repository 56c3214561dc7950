// Ops of manifold-constrained hyper-connections: a residual of several streams. Weights that are made of the streams
// themselves make the input of each half of a layer, and add its output to the streams while they mix them.
// Source: transformers, models/deepseek_v4/modeling_deepseek_v4.py, DeepseekV4HyperConnection; arXiv:2409.19606.
#include "model/decoder_ops.hpp"

namespace dculab {
namespace {

constexpr WeightFormat kStreamFormat{Dtype::f32, 0};

// The products that the weights are made of.
[[nodiscard]] Op plan_stream_weights(const OpPlace& place, const StepSizes& sizes, std::int64_t rows, int weights) {
  return plan_matmul(place, sizes, kStreamFormat, rows, weights,
                     sizes.model.residual_streams * sizes.model.hidden_size);
}

// Reads `read` and writes `written` rows of hidden_size values for each token.
[[nodiscard]] Op plan_mixing(const OpPlace& place, const StepSizes& sizes, std::int64_t rows, int read, int written) {
  const int hidden = sizes.model.hidden_size;
  Op op = make_op(OpKind::mix_streams, place, sizes, rows, hidden);
  const double values = static_cast<double>(rows) * hidden;
  op.add({OperandRole::activation, activations(sizes, read * values), activations(sizes, hidden)});
  op.add({OperandRole::output, activations(sizes, written * values), activations(sizes, hidden)});
  return op;
}

// The streams' RMS norm, which scales the weights, and their weighted sum: 3 and 2 FLOP a value.
[[nodiscard]] Op plan_sum_of_streams(const OpPlace& place, const StepSizes& sizes, std::int64_t rows) {
  const int streams = sizes.model.residual_streams;
  Op op = plan_mixing(place, sizes, rows, streams, 1);
  op.flops = FlopCount(5.0 * streams * static_cast<double>(rows) * sizes.model.hidden_size);
  return op;
}

}  // namespace

Op plan_streams_of_embedding(const StepSizes& sizes) {
  return outside_layers(
      plan_mixing({.name = "embedding_to_streams", .input = Buffer::residual, .output = Buffer::residual}, sizes,
                  sizes.tokens, 1, sizes.model.residual_streams),
      Stage::before_layers);
}

// An iteration of Sinkhorn's normalizes rows, then columns: an addition and a division a value each. A sigmoid or an
// exponential costs about 5 FLOP.
void plan_half_of_streams(StepPlan& plan, const StepSizes& sizes) {
  const int streams = sizes.model.residual_streams, weights = stream_weights(streams);
  plan.ops.push_back(plan_stream_weights({"streams_proj", WeightSlot::streams, Buffer::residual, Buffer::none}, sizes,
                                         sizes.tokens, weights));
  Op op = plan_sum_of_streams({.name = "streams_to_half", .input = Buffer::residual, .output = Buffer::normed}, sizes,
                              sizes.tokens);
  const double iterations = 4.0 * sizes.model.sinkhorn_iterations * streams * streams;
  op.flops += FlopCount(static_cast<double>(sizes.tokens) * (iterations + 7.0 * weights));
  plan.ops.push_back(op);
}

// Of each stream a sum of all streams, and a part of the output.
Op plan_streams_of_half(const StepSizes& sizes) {
  const int streams = sizes.model.residual_streams;
  Op op = plan_mixing({.name = "half_to_streams", .input = Buffer::projected, .output = Buffer::residual}, sizes,
                      sizes.tokens, streams + 1, streams);
  op.flops = FlopCount(2.0 * streams * (streams + 1.0) * static_cast<double>(sizes.tokens) * sizes.model.hidden_size);
  return op;
}

void plan_head_of_streams(StepPlan& plan, const StepSizes& sizes) {
  plan.ops.push_back(outside_layers(
      plan_stream_weights({"head_streams_proj", WeightSlot::head_streams, Buffer::residual, Buffer::none}, sizes,
                          sizes.logits_rows, sizes.model.residual_streams),
      Stage::after_layers));
  plan.ops.push_back(outside_layers(
      plan_sum_of_streams({.name = "streams_to_head", .input = Buffer::residual, .output = Buffer::residual}, sizes,
                          sizes.logits_rows),
      Stage::after_layers));
}

}  // namespace dculab
