#include "core/step_plan.hpp"
#include "core/activation_mode.hpp"

#include <algorithm>
#include <cmath>

#include "core/attention_work.hpp"
#include "core/kivi.hpp"

namespace dculab {
namespace {

// The sizes of a step that every op needs.
struct StepSizes {
  const ModelShape& model;
  const EngineOptions& options;
  std::int64_t tokens;       // new tokens of all sequences
  std::int64_t logits_rows;  // tokens whose logits are wanted
  std::int64_t unwritten;    // tokens whose K and V are in the cache already
};

[[nodiscard]] Bytes activations(const StepSizes& sizes, double values) {
  return storage(sizes.options.activation_dtype, values);
}

// What an op is called, whose weights it reads, and where its input comes from and its output goes.
struct Place {
  std::string_view name;
  WeightSlot weight = WeightSlot::none;
  Buffer input = Buffer::none, output = Buffer::none;
};

[[nodiscard]] Op make_op(OpKind kind, const Place& place, const StepSizes& sizes, std::int64_t rows, int columns) {
  Op op;
  op.kind = kind;
  op.name = place.name;
  op.weight = place.weight;
  op.input = place.input;
  op.output = place.output;
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

enum class Bias : std::uint8_t { none, one };

[[nodiscard]] Bias bias_if(bool has_bias) { return has_bias ? Bias::one : Bias::none; }

// A bias is read with the columns of weights that it belongs to.
[[nodiscard]] Op plan_matmul(const Place& place, const StepSizes& sizes, WeightFormat format, std::int64_t num_rows,
                             int n, int k, Bias bias = Bias::none) {
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

using Added = std::array<Buffer, 2>;

// What the next norm adds to the residual after both halves of a block: the MLP's, or of a parallel block both.
[[nodiscard]] Added added_after(BlockKind block) {
  return {Buffer::projected, block == BlockKind::sequential ? Buffer::none : Buffer::mlp_projected};
}

// residual += x for each of `added`; out = norm(residual). Reads those and the residual, writes it and out.
// About 3 FLOP a value for rms_norm, and 7 for layer_norm, which subtracts a mean and adds a bias.
[[nodiscard]] Op plan_norm(const Place& place, const StepSizes& sizes, std::int64_t rows, const Added& buffers) {
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

[[nodiscard]] Op plan_embedding(const StepSizes& sizes) {
  const int width = sizes.model.hidden_size;
  Op op = make_op(OpKind::embedding,
                  {.name = "embed_tokens", .weight = WeightSlot::embed_tokens, .output = Buffer::residual}, sizes,
                  sizes.tokens, width);
  op.weight_format = {sizes.model.dtype, 0};
  const auto tokens = static_cast<double>(sizes.tokens);
  const double rows = std::min<double>(tokens, sizes.model.vocab_size);
  op.add({OperandRole::weight, storage(sizes.model.dtype, rows * width), storage(sizes.model.dtype, width)});
  op.add({OperandRole::output, activations(sizes, tokens * width), activations(sizes, width)});
  return outside_layers(op, Stage::before_layers);
}

// K and V of the new tokens, to where attention will find them, one head of one token at a time.
void add_cache_writes(Op& op, const StepSizes& sizes) {
  const ModelShape& model = sizes.model;
  const Dtype dtype = sizes.options.kv_cache_dtype;
  const auto written = static_cast<double>(sizes.tokens - sizes.unwritten);
  if (written > 0)
    op.add({OperandRole::kv_write, kv_storage(dtype, 2.0 * written * model.kv_width(), model.head_dim),
            storage(dtype, model.head_dim)});
}

// KIVI: they are rounded to F16 where they are, and whole groups are quantized into the blocks.
void add_kivi_groups(Op& op, const StepSizes& sizes, const Batch& batch) {
  const ModelShape& model = sizes.model;
  const Dtype dtype = sizes.options.kv_cache_dtype;
  const double row = 2.0 * model.kv_width();
  double grouped = 0, from_residual = 0;
  for (const SequenceSlice& sequence : batch.sequences) {
    const KiviTraffic tokens =
        kivi_traffic(sequence.num_computed_tokens, sequence.context_tokens(), 0, sizes.options.kv_residual_tokens);
    grouped += tokens.grouped;
    from_residual += tokens.residual_grouped;
  }
  op.add({OperandRole::output, activations(sizes, row * static_cast<double>(sizes.tokens)),
          activations(sizes, model.head_dim)});
  if (grouped > 0)
    op.add({OperandRole::kv_write, kv_storage(dtype, row * grouped, model.head_dim), storage(dtype, model.head_dim)});
  if (from_residual > 0)
    op.add({OperandRole::kv_read, storage(Dtype::f16, row * from_residual), storage(Dtype::f16, model.head_dim)});
}

// Rotation: 3 FLOP a value of Q and K; with ALiBi nothing is rotated, and Q not touched.
[[nodiscard]] Op plan_rope_and_cache(const StepSizes& sizes, const Batch& batch) {
  const ModelShape& model = sizes.model;
  const auto tokens = static_cast<double>(sizes.tokens);
  Op op = make_op(OpKind::rope_and_cache, {.name = "rope_and_cache", .input = Buffer::qkv, .output = Buffer::qkv},
                  sizes, sizes.tokens, model.query_width() + 2 * model.kv_width());
  op.rotates = model.position == PositionKind::rope;
  const double read = op.rotates ? static_cast<double>(op.n) : 2.0 * model.kv_width();
  op.add({OperandRole::activation, activations(sizes, tokens * read), activations(sizes, model.head_dim)});
  if (op.rotates) {
    op.flops = FlopCount(3.0 * tokens * (model.query_width() + model.kv_width()));
    op.add({OperandRole::output, activations(sizes, tokens * model.query_width()), activations(sizes, model.head_dim)});
  }
  op.kv_retention = sizes.options.kv_retention;
  op.attention.kv_dtype = sizes.options.kv_cache_dtype;
  if (is_kivi(sizes.options.kv_cache_dtype))
    add_kivi_groups(op, sizes, batch);
  else
    add_cache_writes(op, sizes);
  return op;
}

// The first keys and values of `sequences` sequences, which are kept in F32 beside the cache: rotated and written anew.
[[nodiscard]] Op plan_shift_sink_keys(const StepSizes& sizes, std::int64_t sequences) {
  const ModelShape& model = sizes.model;
  const std::int64_t rows = sequences * sizes.options.kv_retention.sink_tokens;
  Op op = make_op(OpKind::shift_sink_keys, {.name = "shift_sink_keys"}, sizes, rows, 2 * model.kv_width());
  op.kv_retention = sizes.options.kv_retention;
  const double values = static_cast<double>(rows) * model.kv_width();
  op.flops = FlopCount(3.0 * values);
  op.add({OperandRole::activation, storage(Dtype::f32, 2 * values), storage(Dtype::f32, model.head_dim)});
  op.add({OperandRole::kv_write, kv_storage(sizes.options.kv_cache_dtype, 2 * values, model.head_dim),
          storage(sizes.options.kv_cache_dtype, model.head_dim)});
  return op;
}

// What a retention policy does before the new keys and values are written.
void plan_eviction(StepPlan& plan, const StepSizes& sizes) {
  if (sizes.options.kv_retention.policy != RetentionPolicy::sinks) return;
  std::int64_t shifted = 0;
  for (const SequenceSlice& sequence : plan.batch.sequences) shifted += sequence.num_newly_evicted_tokens > 0 ? 1 : 0;
  if (shifted > 0) plan.ops.push_back(plan_shift_sink_keys(sizes, shifted));
}

[[nodiscard]] std::string_view activation_name(const ModelShape& model) {
  const bool gelu = model.activation != ActivationKind::silu;
  if (model.mlp == MlpKind::gated) return gelu ? "gelu_and_mul" : "silu_and_mul";
  return gelu ? "gelu" : "activation";
}

// silu(gate) * up costs about 6 FLOP a value, gelu about 8; another plain activation 1.
[[nodiscard]] Op plan_activation(const StepSizes& sizes) {
  const int width = sizes.model.intermediate_size;
  const bool gated = sizes.model.mlp == MlpKind::gated;
  Op op = make_op(OpKind::activation_mul,
                  {.name = activation_name(sizes.model), .input = Buffer::up, .output = Buffer::activated}, sizes,
                  sizes.tokens, width);
  const double values = static_cast<double>(sizes.tokens) * width;
  op.is_plain_gelu = !gated && sizes.model.activation != ActivationKind::silu;
  const double each = sizes.model.activation == ActivationKind::silu ? (gated ? 6.0 : 1.0) : (gated ? 9.0 : 8.0);
  op.flops = FlopCount(each * values);
  op.add({OperandRole::activation, activations(sizes, (gated ? 2 : 1) * values), activations(sizes, width)});
  op.add({OperandRole::output, activations(sizes, values), activations(sizes, width)});
  return op;
}

// What devices that share the model exchange: Megatron's two sums a layer, that of the embedding, and the logits.
[[nodiscard]] Op plan_collective(OpKind kind, std::string_view name, const StepSizes& sizes, std::int64_t rows,
                                 int width) {
  Op op = make_op(kind, {.name = name}, sizes, rows, width);
  op.devices = sizes.model.tensor_parallel_size;
  const double values = static_cast<double>(rows) * width;
  const double gathered = kind == OpKind::all_gather ? op.devices : 1;
  op.add({OperandRole::activation, activations(sizes, values), activations(sizes, width)});
  op.add({OperandRole::output, activations(sizes, gathered * values), activations(sizes, width)});
  return op;
}

void plan_all_reduce(StepPlan& plan, std::string_view name, const StepSizes& sizes, Stage stage = Stage::layer) {
  if (sizes.model.tensor_parallel_size == 1) return;
  const Op op = plan_collective(OpKind::all_reduce, name, sizes, sizes.tokens, sizes.model.hidden_size);
  plan.ops.push_back(stage == Stage::layer ? op : outside_layers(op, stage));
}

void plan_attention_half(StepPlan& plan, const StepSizes& sizes) {
  const ModelShape& model = sizes.model;
  const WeightFormat format = sizes.options.weights;
  const std::int64_t tokens = sizes.tokens;
  const int hidden = model.hidden_size;
  Op norm = plan_norm({"input_layernorm", WeightSlot::attention_norm, Buffer::residual, Buffer::normed}, sizes, tokens,
                      added_after(model.block));
  norm.adds_layer_before = true;
  plan.ops.push_back(norm);
  plan.ops.push_back(plan_matmul({"qkv_proj", WeightSlot::qkv_proj, Buffer::normed, Buffer::qkv}, sizes, format, tokens,
                                 model.query_width() + 2 * model.kv_width(), hidden, bias_if(model.qkv_bias)));
  plan_eviction(plan, sizes);
  plan.ops.push_back(plan_rope_and_cache(sizes, plan.batch));
  for (const Phase phase : {Phase::prefill, Phase::decode}) {
    Op attention = plan_attention(model, sizes.options, plan.batch, phase);
    if (attention.attention.num_sequences > 0) plan.ops.push_back(attention);
  }
  if (sizes.options.kv_retention.policy == RetentionPolicy::heavy_hitters)
    plan.ops.push_back(plan_attention_scores(model, sizes.options, plan.batch));
  plan.ops.push_back(plan_matmul({"o_proj", WeightSlot::o_proj, Buffer::attention, Buffer::projected}, sizes, format,
                                 tokens, hidden, model.query_width(), bias_if(model.attention_output_bias)));
  plan_all_reduce(plan, "attention_all_reduce", sizes);
}

// A parallel block adds what attention gave with what the MLP gives, in the next norm; its own second norm, where it
// has one, adds nothing.
void plan_mlp_half(StepPlan& plan, const StepSizes& sizes) {
  const ModelShape& model = sizes.model;
  const WeightFormat format = sizes.options.weights;
  const std::int64_t tokens = sizes.tokens;
  const int hidden = model.hidden_size, width = model.intermediate_size;
  const bool gated = model.mlp == MlpKind::gated;
  const Bias bias = bias_if(model.mlp_bias);
  const bool sequential = model.block == BlockKind::sequential;
  if (model.block != BlockKind::parallel)
    plan.ops.push_back(plan_norm({"post_attention_layernorm", WeightSlot::mlp_norm, Buffer::residual, Buffer::normed},
                                 sizes, tokens, {sequential ? Buffer::projected : Buffer::none}));
  plan.ops.push_back(plan_matmul({gated ? "gate_up_proj" : "up_proj", WeightSlot::up_proj, Buffer::normed, Buffer::up},
                                 sizes, format, tokens, (gated ? 2 : 1) * width, hidden, bias));
  plan.ops.push_back(plan_activation(sizes));
  plan.ops.push_back(plan_matmul(
      {"down_proj", WeightSlot::down_proj, Buffer::activated, sequential ? Buffer::projected : Buffer::mlp_projected},
      sizes, format, tokens, hidden, width, bias));
  plan_all_reduce(plan, "mlp_all_reduce", sizes);
}

}  // namespace

void plan_step_into(StepPlan& plan, const ModelShape& model, const EngineOptions& options) {
  std::int64_t logits_rows = 0;
  for (const SequenceSlice& sequence : plan.batch.sequences) logits_rows += sequence.num_logits;
  const StepSizes sizes{model, options, plan.batch.num_tokens(), logits_rows, plan.batch.num_unwritten_tokens()};
  plan.ops.clear();
  plan.attention_split = options.attention_split;
  plan.filtered_logits = plan.batch.filters_logits ? logits_rows * model.vocab_size * model.tensor_parallel_size : 0;
  plan.ops.push_back(plan_embedding(sizes));
  plan_all_reduce(plan, "embedding_all_reduce", sizes, Stage::before_layers);
  if (model.embedding_norm)
    plan.ops.push_back(outside_layers(
        plan_norm({"word_embeddings_layernorm", WeightSlot::embed_norm, Buffer::residual, Buffer::residual}, sizes,
                  sizes.tokens, {}),
        Stage::before_layers));
  plan_attention_half(plan, sizes);
  plan_mlp_half(plan, sizes);
  if (logits_rows == 0) return;
  plan.ops.push_back(outside_layers(plan_norm({"norm", WeightSlot::final_norm, Buffer::residual, Buffer::normed}, sizes,
                                              logits_rows, added_after(model.block)),
                                    Stage::after_layers));
  const Op head = plan_matmul({"lm_head", WeightSlot::lm_head, Buffer::normed, Buffer::logits}, sizes,
                              model.head_format(options.weights), logits_rows, model.vocab_size, model.hidden_size);
  plan.ops.push_back(outside_layers(head, Stage::after_layers));
  if (model.tensor_parallel_size == 1) return;
  const Op logits = plan_collective(OpKind::all_gather, "logits_all_gather", sizes, logits_rows, model.vocab_size);
  plan.ops.push_back(outside_layers(logits, Stage::after_layers));
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
