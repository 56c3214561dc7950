#include "core/step_plan.hpp"

#include <algorithm>
#include <cmath>

#include "core/attention_work.hpp"

namespace dculab {
namespace {

// The sizes of a step that every op needs.
struct StepSizes {
  const ModelShape& model;
  const EngineOptions& options;
  int tokens;       // new tokens of all sequences
  int logits_rows;  // tokens whose logits are wanted
};

[[nodiscard]] Bytes activations(const StepSizes& sizes, double values) {
  return storage(sizes.options.activation_dtype, values);
}

[[nodiscard]] Op make_op(OpKind kind, std::string_view name, const StepSizes& sizes, int rows, int columns) {
  Op op;
  op.kind = kind;
  op.name = name;
  op.count = sizes.model.num_hidden_layers;
  op.activation_dtype = sizes.options.activation_dtype;
  op.m = rows;
  op.n = columns;
  return op;
}

[[nodiscard]] Op outside_layers(Op op, Stage stage) {
  op.stage = stage;
  op.count = 1;
  return op;
}

[[nodiscard]] Op plan_matmul(std::string_view name, const StepSizes& sizes, WeightFormat format, int m, int n, int k) {
  Op op = make_op(OpKind::matmul, name, sizes, m, n);
  op.k = k;
  op.weight_format = format;
  op.flops = FlopCount(2.0 * m * n * k);
  const KernelTiling& tiling = sizes.options.tiling;
  const Bytes row = weight_storage(format, k);
  op.add({OperandRole::weight, weight_storage(format, static_cast<double>(n) * k),
          std::ceil(static_cast<double>(m) / tiling.matmul_rows), row});
  op.add({OperandRole::activation, activations(sizes, static_cast<double>(m) * k),
          std::ceil(static_cast<double>(n) / tiling.matmul_columns), activations(sizes, k)});
  op.add({OperandRole::output, activations(sizes, static_cast<double>(m) * n), 1, activations(sizes, n)});
  return op;
}

// residual += x; out = rms_norm(residual): two reads, two writes, about 4 FLOP a value.
[[nodiscard]] Op plan_norm(std::string_view name, const StepSizes& sizes, int rows) {
  const int width = sizes.model.hidden_size;
  Op op = make_op(OpKind::rms_norm, name, sizes, rows, width);
  const double values = static_cast<double>(rows) * width;
  op.flops = FlopCount(4.0 * values);
  op.add({OperandRole::weight, storage(sizes.model.dtype, width), 1, storage(sizes.model.dtype, width)});
  op.add({OperandRole::activation, activations(sizes, 2 * values), 1, activations(sizes, width)});
  op.add({OperandRole::output, activations(sizes, 2 * values), 1, activations(sizes, width)});
  return op;
}

[[nodiscard]] Op plan_embedding(const StepSizes& sizes) {
  const int width = sizes.model.hidden_size;
  Op op = make_op(OpKind::embedding, "embed_tokens", sizes, sizes.tokens, width);
  op.weight_format = {sizes.model.dtype, 0};
  const double rows = std::min(sizes.tokens, sizes.model.vocab_size);
  op.add({OperandRole::weight, storage(sizes.model.dtype, rows * width), 1, storage(sizes.model.dtype, width)});
  op.add({OperandRole::output, activations(sizes, static_cast<double>(sizes.tokens) * width), 1,
          activations(sizes, width)});
  return outside_layers(op, Stage::before_layers);
}

// Rotation: 3 FLOP a value of Q and K. K and V are written in the cache's dtype, one head of one token at a time.
[[nodiscard]] Op plan_rope_and_cache(const StepSizes& sizes) {
  const ModelShape& model = sizes.model;
  const double tokens = sizes.tokens;
  Op op = make_op(OpKind::rope_and_cache, "rope_and_cache", sizes, sizes.tokens,
                  model.query_width() + 2 * model.kv_width());
  op.flops = FlopCount(3.0 * tokens * (model.query_width() + model.kv_width()));
  op.add({OperandRole::activation, activations(sizes, tokens * static_cast<double>(op.n)), 1,
          activations(sizes, model.head_dim)});
  op.add(
      {OperandRole::output, activations(sizes, tokens * model.query_width()), 1, activations(sizes, model.head_dim)});
  op.add({OperandRole::kv_write, storage(sizes.options.kv_cache_dtype, 2.0 * tokens * model.kv_width()), 1,
          storage(sizes.options.kv_cache_dtype, model.head_dim)});
  return op;
}

// silu(gate) * up costs about 6 FLOP a value; a plain activation 1.
[[nodiscard]] Op plan_activation(const StepSizes& sizes) {
  const int width = sizes.model.intermediate_size;
  const bool gated = sizes.model.mlp == MlpKind::gated;
  Op op = make_op(OpKind::activation_mul, gated ? "silu_and_mul" : "activation", sizes, sizes.tokens, width);
  const double values = static_cast<double>(sizes.tokens) * width;
  op.flops = FlopCount((gated ? 6.0 : 1.0) * values);
  op.add({OperandRole::activation, activations(sizes, (gated ? 2 : 1) * values), 1, activations(sizes, width)});
  op.add({OperandRole::output, activations(sizes, values), 1, activations(sizes, width)});
  return op;
}

void plan_layer(StepPlan& plan, const StepSizes& sizes) {
  const ModelShape& model = sizes.model;
  const WeightFormat format = sizes.options.weights;
  const int tokens = sizes.tokens;
  const int hidden = model.hidden_size;
  plan.ops.push_back(plan_norm("input_layernorm", sizes, tokens));
  plan.ops.push_back(
      plan_matmul("qkv_proj", sizes, format, tokens, model.query_width() + 2 * model.kv_width(), hidden));
  plan.ops.push_back(plan_rope_and_cache(sizes));
  for (const Phase phase : {Phase::prefill, Phase::decode}) {
    Op attention = plan_attention(model, sizes.options, plan.batch, phase);
    if (attention.attention.num_sequences > 0) plan.ops.push_back(attention);
  }
  plan.ops.push_back(plan_matmul("o_proj", sizes, format, tokens, hidden, model.query_width()));
  plan.ops.push_back(plan_norm("post_attention_layernorm", sizes, tokens));
  const bool gated = model.mlp == MlpKind::gated;
  plan.ops.push_back(plan_matmul(gated ? "gate_up_proj" : "up_proj", sizes, format, tokens,
                                 (gated ? 2 : 1) * model.intermediate_size, hidden));
  plan.ops.push_back(plan_activation(sizes));
  plan.ops.push_back(plan_matmul("down_proj", sizes, format, tokens, hidden, model.intermediate_size));
}

}  // namespace

void plan_step_into(StepPlan& plan, const ModelShape& model, const EngineOptions& options) {
  int logits_rows = 0;
  for (const SequenceSlice& sequence : plan.batch.sequences) logits_rows += sequence.needs_logits ? 1 : 0;
  const StepSizes sizes{model, options, plan.batch.num_tokens(), logits_rows};
  plan.ops.clear();
  plan.ops.push_back(plan_embedding(sizes));
  plan_layer(plan, sizes);
  if (logits_rows == 0) return;
  plan.ops.push_back(outside_layers(plan_norm("norm", sizes, logits_rows), Stage::after_layers));
  const Op head =
      plan_matmul("lm_head", sizes, WeightFormat{model.dtype, 0}, logits_rows, model.vocab_size, model.hidden_size);
  plan.ops.push_back(outside_layers(head, Stage::after_layers));
}

StepPlan plan_step(const ModelShape& model, const EngineOptions& options, Batch batch) {
  StepPlan plan;
  plan.batch = std::move(batch);
  plan_step_into(plan, model, options);
  return plan;
}

FlopCount total_flops(const StepPlan& plan) {
  FlopCount total;
  for (const Op& op : plan.ops) total += op.flops * op.count;
  return total;
}

}  // namespace dculab
