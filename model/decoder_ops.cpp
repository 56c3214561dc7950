#include "model/decoder_ops.hpp"

#include <algorithm>
#include <cmath>

#include "core/activation_mode.hpp"

namespace dculab {
namespace {

[[nodiscard]] std::string_view activation_name(const Dense& mlp) {
  const bool gelu = is_gelu(mlp.activation);
  if (mlp.kind == MlpKind::gated) return gelu ? "gelu_and_mul" : "silu_and_mul";
  return gelu ? "gelu" : "activation";
}

}  // namespace

PhaseTokens tokens_of(const Batch& batch, Phase phase) {
  PhaseTokens tokens;
  for (const SequenceSlice& sequence : batch.sequences)
    if (sequence.phase == phase) {
      tokens.sequences += 1;
      tokens.added += sequence.num_new_tokens;
      tokens.context += sequence.context_tokens();
    }
  return tokens;
}

Bytes activations(const StepSizes& sizes, double values) { return storage(sizes.options.activation_dtype, values); }

Op make_op(OpKind kind, const OpPlace& place, const StepSizes& sizes, std::int64_t rows, int columns) {
  Op op;
  op.kind = kind;
  op.name = place.name;
  op.weight = place.weight;
  op.input = place.input;
  op.output = place.output;
  op.activation_dtype = sizes.options.activation_dtype;
  op.m = rows;
  op.n = columns;
  return of_layers(op, sizes);
}

Op of_layers(Op op, const StepSizes& sizes) {
  op.layer_kind = static_cast<std::uint8_t>(sizes.kind);
  op.count = sizes.num_layers;
  return op;
}

Op outside_layers(Op op, Stage stage) {
  op.stage = stage;
  op.layer_kind = 0;
  op.count = 1;
  return op;
}

// A bias is read with the columns of weights that it belongs to.
Op plan_matmul(const OpPlace& place, const StepSizes& sizes, WeightFormat format, std::int64_t num_rows, int n, int k,
               Bias bias) {
  Op op = make_op(OpKind::matmul, place, sizes, num_rows, n);
  const auto m = static_cast<double>(num_rows);
  op.k = k;
  if (format.group_size < 0) format.group_size = k;
  op.weight_format = format;
  if (takes_activations(format, sizes.options.activations)) op.activations = sizes.options.activations;
  op.flops = FlopCount(2.0 * m * n * k);
  op.add({OperandRole::weight, weight_storage(format, static_cast<double>(n) * k), weight_storage(format, k)});
  op.add({OperandRole::activation, activations(sizes, m * k), activations(sizes, k)});
  op.add({OperandRole::output, activations(sizes, m * n), activations(sizes, n)});
  if (bias == Bias::one) {
    op.flops += FlopCount(m * n);
    const Bytes values = storage(sizes.model.dtype, n);
    op.add({OperandRole::weight, values, values});
  }
  return op;
}

Op plan_grouped_product(const OpPlace& place, const StepSizes& sizes, int groups, std::int64_t tokens, int n, int k) {
  Op op = plan_matmul(place, sizes, sizes.format_of(place.weight), tokens * groups, n, k);
  op.groups = {.count = groups, .touched = static_cast<double>(groups), .longest_rows = static_cast<double>(tokens)};
  for (std::size_t index = 0; index < kTileSizes; ++index)
    op.groups.tiles[index] = groups * std::ceil(static_cast<double>(tokens) / (1 << index));
  for (Operand& operand : op.operand_storage)
    if (operand.role == OperandRole::weight) operand.unique *= op.groups.touched;
  return op;
}

// residual += x for each of `added`; out = norm(residual). Reads those and the residual, writes it and out.
// About 3 FLOP a value for rms_norm, and 7 for layer_norm, which subtracts a mean and adds a bias.
Op plan_norm(const OpPlace& place, const StepSizes& sizes, std::int64_t rows, const Added& buffers) {
  const int width = sizes.model.hidden_size;
  const bool layer_norm = sizes.model.norm == NormKind::layer_norm;
  const auto added = std::ssize(buffers) - std::ranges::count(buffers, Buffer::none);
  Op op = make_op(layer_norm ? OpKind::layer_norm : OpKind::rms_norm, place, sizes, rows, width);
  op.added = buffers;
  const double values = static_cast<double>(rows) * width;
  const Bytes weight = storage(sizes.model.dtype, width);
  op.flops = FlopCount(((layer_norm ? 7.0 : 3.0) + static_cast<double>(added)) * values);
  op.add({OperandRole::weight, weight * (layer_norm ? 2.0 : 1.0), weight});
  op.add({OperandRole::activation, activations(sizes, static_cast<double>(1 + added) * values),
          activations(sizes, width)});
  op.add({OperandRole::output, activations(sizes, (added > 0 ? 2 : 1) * values), activations(sizes, width)});
  return op;
}

Op plan_residual_add(const StepSizes& sizes, bool adds_layer_before) {
  const int width = sizes.model.hidden_size;
  Op op = make_op(OpKind::residual_add, {"residual_add", WeightSlot::none, Buffer::residual, Buffer::normed}, sizes,
                  sizes.tokens, width);
  op.added = {Buffer::projected};
  op.adds_layer_before = adds_layer_before;
  const double values = static_cast<double>(sizes.tokens) * width;
  op.flops = FlopCount(values);
  op.add({OperandRole::activation, activations(sizes, 2 * values), activations(sizes, width)});
  op.add({OperandRole::output, activations(sizes, values), activations(sizes, width)});
  return op;
}

// 3 FLOP a value, as of any RMS norm.
Op plan_head_norm(const OpPlace& place, const StepSizes& sizes, int width, int head_dim, int weights) {
  Op op = make_op(OpKind::qk_norm, place, sizes, sizes.tokens, width);
  const double values = static_cast<double>(sizes.tokens) * width;
  const Bytes gains = storage(sizes.model.dtype, weights);
  op.flops = FlopCount(3 * values);
  if (weights > 0) op.add({OperandRole::weight, gains, gains});
  op.add({OperandRole::activation, activations(sizes, values), activations(sizes, head_dim)});
  op.add({OperandRole::output, activations(sizes, values), activations(sizes, head_dim)});
  return op;
}

// V's norm, where there is one, goes with those of Q and K.
Op plan_qk_norm(const StepSizes& sizes) {
  const Gqa& attention = sizes.layer().gqa();
  const Heads& heads = attention.heads;
  const int keys = attention.shares_kv ? 0 : heads.kv_width();
  const int width = heads.query_width() + keys, normed = width + (attention.v_norm ? keys : 0);
  const int weights = attention.qk_norm == QkNorm::unweighted ? 0
                      : attention.qk_norm == QkNorm::whole    ? width
                                                              : (keys > 0 ? 2 : 1) * heads.head_dim;
  return plan_head_norm({"qk_norm", WeightSlot::qk_norm, Buffer::qkv, Buffer::qkv}, sizes, normed, heads.head_dim,
                        weights);
}

// A sigmoid costs about 5 FLOP.
Op plan_output_gate(const StepSizes& sizes) {
  const Heads& heads = sizes.heads();
  Op op = make_op(OpKind::output_gate, {.name = "output_gate", .input = Buffer::qkv, .output = Buffer::attention},
                  sizes, sizes.tokens, heads.query_width());
  const double values = static_cast<double>(sizes.tokens) * heads.query_width();
  op.flops = FlopCount(6 * values);
  op.add({OperandRole::activation, activations(sizes, 2 * values), activations(sizes, heads.head_dim)});
  op.add({OperandRole::output, activations(sizes, values), activations(sizes, heads.head_dim)});
  return op;
}

// A tanh costs about 8 FLOP, as of GELU.
Op plan_soft_cap(const StepSizes& sizes) {
  const int width = sizes.model.vocab_size;
  Op op = make_op(OpKind::soft_cap, {"soft_cap", WeightSlot::none, Buffer::logits, Buffer::logits}, sizes,
                  sizes.logits_rows, width);
  const double values = static_cast<double>(sizes.logits_rows) * width;
  op.flops = FlopCount(8 * values);
  op.add({OperandRole::activation, activations(sizes, values), activations(sizes, width)});
  op.add({OperandRole::output, activations(sizes, values), activations(sizes, width)});
  return outside_layers(op, Stage::after_layers);
}

Op plan_embedding(const StepSizes& sizes) {
  const int width = sizes.model.hidden_size;
  Op op = make_op(OpKind::embedding,
                  {.name = "embed_tokens", .weight = WeightSlot::embed_tokens, .output = Buffer::residual}, sizes,
                  sizes.tokens, width);
  op.weight_format = {sizes.model.dtype, 0};
  const auto tokens = static_cast<double>(sizes.tokens);
  const double rows = std::min<double>(tokens, sizes.model.vocab_size);
  op.add({OperandRole::weight, storage(sizes.model.dtype, rows * width), storage(sizes.model.dtype, width)});
  op.add({OperandRole::output, activations(sizes, tokens * width), activations(sizes, width)});
  if (const int positions = sizes.model.learned_positions; positions > 0) {
    const double read = std::min<double>(tokens, positions);
    op.flops = FlopCount(tokens * width);
    op.add({OperandRole::weight, storage(sizes.model.dtype, read * width), storage(sizes.model.dtype, width)});
  }
  return outside_layers(op, Stage::before_layers);
}

// silu(gate) * up costs about 6 FLOP a value, gelu about 8; another plain activation 1.
Op plan_activation(const StepSizes& sizes) {
  const Dense& mlp = sizes.layer().mlp;
  const int width = mlp.intermediate_size;
  const bool gated = mlp.kind == MlpKind::gated;
  Op op =
      make_op(OpKind::activation_mul, {.name = activation_name(mlp), .input = Buffer::up, .output = Buffer::activated},
              sizes, sizes.tokens, width);
  const double values = static_cast<double>(sizes.tokens) * width;
  const bool gelu = is_gelu(mlp.activation);
  op.activation = gated ? (gelu ? OpActivation::gelu_and_mul : OpActivation::silu_and_mul)
                        : (gelu ? OpActivation::gelu : OpActivation::plain);
  const double each = is_gelu(mlp.activation) ? (gated ? 9.0 : 8.0) : (gated ? 6.0 : 1.0);
  op.flops = FlopCount(each * values);
  op.add({OperandRole::activation, activations(sizes, (gated ? 2 : 1) * values), activations(sizes, width)});
  op.add({OperandRole::output, activations(sizes, values), activations(sizes, width)});
  return op;
}

Op plan_collective(OpKind kind, const OpPlace& place, const StepSizes& sizes, std::int64_t rows, int width) {
  Op op = make_op(kind, place, sizes, rows, width);
  op.devices = sizes.model.tensor_parallel_size;
  const double values = static_cast<double>(rows) * width;
  const double gathered = kind == OpKind::all_gather ? op.devices : 1;
  op.add({OperandRole::activation, activations(sizes, values), activations(sizes, width)});
  op.add({OperandRole::output, activations(sizes, gathered * values), activations(sizes, width)});
  return op;
}

}  // namespace dculab
