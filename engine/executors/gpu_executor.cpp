#include "engine/executors/gpu_executor.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "engine/executors/gpu_attention.hpp"
#include "engine/executors/plan_checks.hpp"
#include "engine/executors/rope_table.hpp"
#include "kernels/gpu/tiling.hpp"

namespace dculab::engine {
namespace {

using kernels::gpu::Input;
using SteadyClock = std::chrono::steady_clock;

[[nodiscard]] const LlamaWeights& runnable(const LlamaWeights& weights, const GpuExecutorOptions& options) {
  if (weights.shape.mlp != MlpKind::gated) throw InputError("the GPU engine runs gated MLPs (Llama) only");
  if (options.activation_dtype != Dtype::f16 && options.activation_dtype != Dtype::f32)
    throw InputError("activations of " + std::string(name(options.activation_dtype)) +
                     " are not supported on the GPU; use f16 or f32");
  if (!kernels::gpu::is_supported_head_dim(weights.shape.head_dim))
    throw InputError("head_dim " + std::to_string(weights.shape.head_dim) +
                     " is not supported on the GPU; use 32, 64, 80, 96, 128 or 256");
  return weights;
}

[[nodiscard]] DeviceMemory upload_rope_table(const std::shared_ptr<kernels::gpu::Device>& device,
                                             const ModelShape& shape) {
  RopeTable table(shape);
  const float* rows = table.rows(shape.max_position_embeddings);
  const std::size_t bytes = static_cast<std::size_t>(shape.max_position_embeddings) *
                            static_cast<std::size_t>(shape.head_dim) * sizeof(float);
  DeviceMemory memory(device, bytes);
  device->upload(memory.as(), rows, bytes);
  device->synchronize();
  return memory;
}

[[nodiscard]] int blocks_of_longest(const ModelShape& shape, const KvCacheOptions& kv) {
  return std::min(kv.num_blocks, (shape.max_position_embeddings + kv.block_size - 1) / kv.block_size);
}

[[nodiscard]] std::size_t workspace_bytes(const ModelShape& shape, const GpuExecutorOptions& options,
                                          const KvCacheOptions& kv) {
  const std::int64_t cached = std::int64_t{kv.num_blocks} * kv.block_size;
  const auto longest = static_cast<int>(std::min<std::int64_t>(shape.max_position_embeddings, cached));
  return sizeof(float) * gpu_workspace_floats(shape, options.limits, options.tiling.partition_tokens, longest);
}

}  // namespace

GpuExecutor::GpuExecutor(std::shared_ptr<kernels::gpu::Device> device, const LlamaWeights& weights,
                         const KvCacheOptions& kv_cache, const GpuExecutorOptions& options)
    : device_(std::move(device)),
      shape_(runnable(weights, options).shape),
      options_(options),
      weights_(upload_weights(device_, weights)),
      kv_(device_, shape_, kv_cache),
      activations_(device_, shape_, options.activation_dtype, options.limits),
      max_blocks_per_seq_(blocks_of_longest(shape_, kv_cache)),
      device_inputs_(device_, options.limits, max_blocks_per_seq_),
      cos_sin_(upload_rope_table(device_, shape_)),
      workspace_(device_, workspace_bytes(shape_, options_, kv_cache)),
      logits_(static_cast<std::size_t>(options.limits.max_num_seqs) * static_cast<std::size_t>(shape_.vocab_size)) {}

GpuExecutor::~GpuExecutor() = default;

std::string GpuExecutor::build_name() const {
  return "GPU kernels, waves of " + std::to_string(device_->info().wave_size) + ", activations " +
         std::string(name(options_.activation_dtype));
}

StepResult GpuExecutor::run(const StepPlan& plan) {
  const auto start = SteadyClock::now();
  fill_inputs(plan);
  marked_ops_.clear();
  run_stage(plan, Stage::before_layers, 0);
  for (int layer = 0; layer < shape_.num_hidden_layers; ++layer) run_stage(plan, Stage::layer, layer);
  run_stage(plan, Stage::after_layers, 0);
  if (timing_ == OpTiming::on) record_mark();
  const std::size_t rows = inputs_.logits_tokens().size();
  if (rows > 0)
    device_->download(logits_.data(), activations_.logits.as(),
                      rows * static_cast<std::size_t>(shape_.vocab_size) * sizeof(float));
  device_->synchronize();
  StepResult result;
  result.duration = Seconds(std::chrono::duration<double>(SteadyClock::now() - start).count());
  if (timing_ == OpTiming::on) result.op_durations = op_durations(plan);
  return result;
}

void GpuExecutor::fill_inputs(const StepPlan& plan) {
  inputs_.fill(plan.batch, {.vocab_size = shape_.vocab_size,
                            .max_position_embeddings = shape_.max_position_embeddings,
                            .num_blocks = kv_.options().num_blocks,
                            .block_size = kv_.options().block_size});
  if (inputs_.num_tokens() > options_.limits.max_num_batched_tokens ||
      static_cast<int>(plan.batch.sequences.size()) > options_.limits.max_num_seqs)
    throw std::invalid_argument("plan: the batch is larger than the executor was made for");
  for (const Phase phase : {Phase::prefill, Phase::decode})
    if (inputs_.attention(phase).max_blocks_per_seq > max_blocks_per_seq_)
      throw std::invalid_argument("plan: a block table is longer than any sequence can be");
  device_inputs_.upload(inputs_);
}

void GpuExecutor::run_stage(const StepPlan& plan, Stage stage, int layer) {
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    if (plan.ops[i].stage != stage) continue;
    if (timing_ == OpTiming::on) record_mark();
    marked_ops_.push_back(i);
    execute(plan.ops[i], layer);
  }
}

// The mark before the op that comes next, or after the last.
void GpuExecutor::record_mark() {
  const std::size_t index = marked_ops_.size();
  if (index == marks_.size()) marks_.push_back(device_->make_mark());
  device_->record(*marks_[index]);
}

std::vector<Seconds> GpuExecutor::op_durations(const StepPlan& plan) const {
  std::vector<Seconds> durations(plan.ops.size());
  for (std::size_t i = 0; i < marked_ops_.size(); ++i)
    durations[marked_ops_[i]] += device_->between(*marks_[i], *marks_[i + 1]);
  return durations;
}

void GpuExecutor::execute(const Op& op, int layer) {
  require(op.count == (op.stage == Stage::layer ? shape_.num_hidden_layers : 1), op, "is for another depth");
  const int tokens = inputs_.num_tokens();
  switch (op.kind) {
    case OpKind::embedding:
      require(op.m == tokens && op.n == shape_.hidden_size, op, "has another shape");
      return device_->embedding({.token_ids = device_inputs_.token_ids.as<std::int32_t>(),
                                 .table = weights_.embed_tokens,
                                 .out = {activations_.residual.as(), Dtype::f32},
                                 .num_tokens = tokens,
                                 .width = shape_.hidden_size});
    case OpKind::rms_norm:
      return execute_norm(op, layer);
    case OpKind::matmul:
      return execute_matmul(op, layer);
    case OpKind::rope_and_cache:
      return execute_rope_and_cache(op, layer);
    case OpKind::attention_prefill:
      return execute_attention(op, layer, Phase::prefill);
    case OpKind::attention_decode:
      return execute_attention(op, layer, Phase::decode);
    case OpKind::activation_mul:
      require(op.m == tokens && op.n == shape_.intermediate_size, op, "has another shape");
      return device_->silu_and_mul({.gate_up = {activations_.gate_up.as(), options_.activation_dtype},
                                    .out = {activations_.activated.as(), options_.activation_dtype},
                                    .num_tokens = tokens,
                                    .width = shape_.intermediate_size});
  }
}

void GpuExecutor::execute_norm(const Op& op, int layer) {
  const bool is_input = op.name == "input_layernorm";
  const bool is_final = op.name == "norm";
  require(is_input || is_final || op.name == "post_attention_layernorm", op, "is not a norm of Llama");
  const GpuLayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const auto rows = is_final ? static_cast<int>(inputs_.logits_tokens().size()) : inputs_.num_tokens();
  require(op.m == rows && op.n == shape_.hidden_size, op, "has another shape");
  if (is_final) keep_logits_rows();
  // The first norm follows the embedding, which is already in the residual.
  const bool is_first = is_input && layer == 0;
  device_->rms_norm(
      {.x = {is_first ? nullptr : activations_.projected.as(), options_.activation_dtype},
       .residual = activations_.residual.as<float>(),
       .weight = is_final ? weights_.norm : (is_input ? weights.input_layernorm : weights.post_attention_layernorm),
       .out = {activations_.normed.as(), options_.activation_dtype},
       .num_tokens = rows,
       .width = shape_.hidden_size,
       .epsilon = static_cast<float>(shape_.rms_norm_eps)});
}

// Moves the rows whose logits are wanted to the front. They are in order, so no row is overwritten before it is read.
void GpuExecutor::keep_logits_rows() {
  const auto width = static_cast<std::size_t>(shape_.hidden_size);
  const std::size_t value = static_cast<std::size_t>(bits(options_.activation_dtype)) / 8;
  const auto move_row = [&](const DeviceMemory& rows, std::size_t row_bytes, std::size_t to, std::size_t from) {
    device_->copy(rows.as<std::byte>() + to * row_bytes, rows.as<std::byte>() + from * row_bytes, row_bytes);
  };
  std::size_t row = 0;
  for (const std::int32_t token : inputs_.logits_tokens()) {
    const auto source = static_cast<std::size_t>(token);
    if (source != row) {
      move_row(activations_.residual, width * sizeof(float), row, source);
      move_row(activations_.projected, width * value, row, source);
    }
    ++row;
  }
}

// What the op's name stands for: where x comes from, which weights, where y goes.
kernels::gpu::Matmul GpuExecutor::bind_matmul(const Op& op, int layer) const {
  const GpuLayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const auto bind = [&](const DeviceMemory& x, const Input& w, const DeviceMemory& y, int n, int k) {
    return kernels::gpu::Matmul{.x = {x.as(), options_.activation_dtype},
                                .w = w,
                                .y = {y.as(), options_.activation_dtype},
                                .m = inputs_.num_tokens(),
                                .n = n,
                                .k = k,
                                .y_stride = n,
                                .workspace = workspace_.as<float>()};
  };
  const GpuActivations& buffers = activations_;
  if (op.name == "qkv_proj")
    return bind(buffers.normed, weights.qkv_proj, buffers.qkv, shape_.query_width() + 2 * shape_.kv_width(),
                shape_.hidden_size);
  if (op.name == "o_proj")
    return bind(buffers.attention, weights.o_proj, buffers.projected, shape_.hidden_size, shape_.query_width());
  if (op.name == "gate_up_proj")
    return bind(buffers.normed, weights.gate_up_proj, buffers.gate_up, 2 * shape_.intermediate_size,
                shape_.hidden_size);
  if (op.name == "down_proj")
    return bind(buffers.activated, weights.down_proj, buffers.projected, shape_.hidden_size, shape_.intermediate_size);
  require(op.name == "lm_head", op, "is not a matrix of Llama");
  kernels::gpu::Matmul head =
      bind(buffers.normed, weights_.lm_head, buffers.logits, shape_.vocab_size, shape_.hidden_size);
  head.m = static_cast<int>(inputs_.logits_tokens().size());
  head.y.dtype = Dtype::f32;
  return head;
}

void GpuExecutor::execute_matmul(const Op& op, int layer) {
  const kernels::gpu::Matmul args = bind_matmul(op, layer);
  require(op.m == args.m && op.n == args.n && op.k == args.k, op, "has another shape than its weights");
  require(op.weight_format == WeightFormat{args.w.dtype, 0}, op, "is planned in another dtype than its weights");
  device_->matmul(args);
}

void GpuExecutor::execute_rope_and_cache(const Op& op, int layer) {
  const int width = shape_.query_width() + 2 * shape_.kv_width();
  require(op.m == inputs_.num_tokens() && op.n == width, op, "has another shape");
  const Dtype dtype = options_.activation_dtype;
  device_->rotary_embedding({.qkv = {activations_.qkv.as(), dtype},
                             .positions = device_inputs_.positions.as<std::int32_t>(),
                             .cos_sin = cos_sin_.as<float>(),
                             .num_tokens = inputs_.num_tokens(),
                             .num_heads = shape_.num_attention_heads,
                             .num_kv_heads = shape_.num_key_value_heads,
                             .head_dim = shape_.head_dim});
  const auto at = [&](int column) { return Input{activations_.qkv.as<std::byte>() + column * bits(dtype) / 8, dtype}; };
  device_->reshape_and_cache({.k = at(shape_.query_width()),
                              .v = at(shape_.query_width() + shape_.kv_width()),
                              .kv_stride = width,
                              .slot_mapping = device_inputs_.slot_mapping.as<std::int64_t>(),
                              .cache = kv_.layer(layer),
                              .num_tokens = inputs_.num_tokens()});
}

void GpuExecutor::execute_attention(const Op& op, int layer, Phase phase) {
  const AttentionInputs& inputs = inputs_.attention(phase);
  require(op.attention.num_sequences == inputs.num_seqs && op.attention.num_query_heads == shape_.num_attention_heads &&
              op.attention.num_kv_heads == shape_.num_key_value_heads,
          op, "has another shape");
  require(op.attention.block_size == kv_.options().block_size && op.attention.kv_dtype == kv_.options().dtype, op,
          "is planned for another KV cache");
  const GpuAttention attention{.shape = shape_,
                               .tiling = options_.tiling,
                               .activation_dtype = options_.activation_dtype,
                               .cache = kv_.layer(layer),
                               .inputs = inputs,
                               .on_device = phase == Phase::prefill ? device_inputs_.prefill : device_inputs_.decode,
                               .qkv = activations_.qkv.as<std::byte>(),
                               .out = activations_.attention.as<std::byte>(),
                               .workspace = workspace_.as<float>()};
  if (phase == Phase::decode) return device_->paged_attention(attention.decode());
  device_->prefill_attention(attention.prefill());
}

std::span<const float> GpuExecutor::logits(int row) const {
  const auto width = static_cast<std::size_t>(shape_.vocab_size);
  return std::span(logits_).subspan(static_cast<std::size_t>(row) * width, width);
}

}  // namespace dculab::engine
