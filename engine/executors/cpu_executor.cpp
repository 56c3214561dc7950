#include "engine/executors/cpu_executor.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "engine/executors/plan_checks.hpp"

namespace dculab::engine {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kHeadDimMultiple = 8;  // of the attention kernel

Seconds between(SteadyClock::time_point start, SteadyClock::time_point end) {
  return Seconds(std::chrono::duration<double>(end - start).count());
}

void require_runnable(const ModelShape& shape) {
  if (shape.mlp != MlpKind::gated) throw InputError("the CPU engine runs gated MLPs (Llama) only");
  if (shape.head_dim % kHeadDimMultiple != 0)
    throw InputError("head_dim " + std::to_string(shape.head_dim) +
                     " is not supported: the CPU engine needs a multiple of " + std::to_string(kHeadDimMultiple));
}

LlamaWeights runnable(LlamaWeights weights) {
  require_runnable(weights.shape);
  return weights;
}

kernels::MatmulArgs matmul_args(const std::vector<float>& x, std::initializer_list<kernels::WeightView> weights,
                                std::vector<float>& y, int m, int k) {
  kernels::MatmulArgs args;
  args.x = x.data();
  args.num_weights = static_cast<int>(weights.size());
  args.y = y.data();
  args.m = m;
  args.k = k;
  std::copy(weights.begin(), weights.end(), args.weights.begin());
  return args;
}

template <typename T>
void grow(std::vector<T>& buffer, int rows, int columns) {
  const auto size = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  if (buffer.size() < size) buffer.resize(size);
}

}  // namespace

CpuExecutor::CpuExecutor(LlamaWeights weights, const KvCacheOptions& kv_cache, int num_threads)
    : weights_(runnable(std::move(weights))),
      kv_(weights_.shape, kv_cache),
      threads_(num_threads),
      rope_(weights_.shape) {}

void CpuExecutor::make_room(int tokens, int logits_rows) {
  const ModelShape& shape = weights_.shape;
  grow(activations_.residual, tokens, shape.hidden_size);
  grow(activations_.normed, tokens, shape.hidden_size);
  grow(activations_.qkv, tokens, shape.query_width() + 2 * shape.kv_width());
  grow(activations_.attention, tokens, shape.query_width());
  grow(activations_.projected, tokens, shape.hidden_size);
  grow(activations_.gate_up, tokens, 2 * shape.intermediate_size);
  grow(activations_.activated, tokens, shape.intermediate_size);
  grow(activations_.logits, logits_rows, shape.vocab_size);
}

StepResult CpuExecutor::run(const StepPlan& plan) {
  const auto start = SteadyClock::now();
  inputs_.fill(plan.batch, {.vocab_size = weights_.shape.vocab_size,
                            .max_position_embeddings = weights_.shape.max_position_embeddings,
                            .num_blocks = kv_.options().num_blocks,
                            .block_size = kv_.options().block_size});
  make_room(inputs_.num_tokens(), static_cast<int>(inputs_.logits_tokens().size()));
  cos_sin_ = rope_.rows(inputs_.num_positions());
  StepResult result;
  result.op_durations.resize(plan.ops.size());
  run_stage(plan, Stage::before_layers, 0, result);
  for (int layer = 0; layer < weights_.shape.num_hidden_layers; ++layer) run_stage(plan, Stage::layer, layer, result);
  run_stage(plan, Stage::after_layers, 0, result);
  result.duration = between(start, SteadyClock::now());
  return result;
}

void CpuExecutor::run_stage(const StepPlan& plan, Stage stage, int layer, StepResult& result) {
  auto before = SteadyClock::now();
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    if (op.stage != stage) continue;
    execute(op, layer);
    const auto after = SteadyClock::now();
    result.op_durations[i] += between(before, after);
    before = after;
  }
}

void CpuExecutor::execute(const Op& op, int layer) {
  require(op.count == (op.stage == Stage::layer ? weights_.shape.num_hidden_layers : 1), op, "is for another depth");
  switch (op.kind) {
    case OpKind::embedding:
      require(op.m == inputs_.num_tokens() && op.n == weights_.shape.hidden_size, op, "has another shape");
      return kernels::cpu::embedding(threads_, {.token_ids = inputs_.token_ids().data(),
                                                .table = weights_.embed_tokens,
                                                .out = activations_.residual.data(),
                                                .num_tokens = inputs_.num_tokens(),
                                                .width = weights_.shape.hidden_size});
    case OpKind::rms_norm:
      return execute_norm(op, layer);
    case OpKind::matmul:
      return execute_matmul(op, layer);
    case OpKind::rope_and_cache:
      return execute_rope(op, layer);
    case OpKind::attention_prefill:
      return execute_attention(op, layer, Phase::prefill);
    case OpKind::attention_decode:
      return execute_attention(op, layer, Phase::decode);
    case OpKind::activation_mul:
      require(op.m == inputs_.num_tokens() && op.n == weights_.shape.intermediate_size, op, "has another shape");
      return kernels::cpu::silu_mul(threads_, {.gate_up = activations_.gate_up.data(),
                                               .out = activations_.activated.data(),
                                               .num_tokens = inputs_.num_tokens(),
                                               .width = weights_.shape.intermediate_size});
  }
}

void CpuExecutor::execute_norm(const Op& op, int layer) {
  const bool is_input = op.name == "input_layernorm";
  const bool is_final = op.name == "norm";
  require(is_input || is_final || op.name == "post_attention_layernorm", op, "is not a norm of Llama");
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const auto rows = is_final ? static_cast<int>(inputs_.logits_tokens().size()) : inputs_.num_tokens();
  require(op.m == rows && op.n == weights_.shape.hidden_size, op, "has another shape");
  if (is_final) keep_logits_rows();
  const kernels::WeightView weight =
      is_final ? weights_.norm : (is_input ? weights.input_layernorm : weights.post_attention_layernorm);
  // The first norm follows the embedding, which is already in the residual.
  const bool is_first = is_input && layer == 0;
  kernels::cpu::rms_norm(threads_, {.x = is_first ? nullptr : activations_.projected.data(),
                                    .residual = activations_.residual.data(),
                                    .weight = weight,
                                    .out = activations_.normed.data(),
                                    .num_tokens = rows,
                                    .width = weights_.shape.hidden_size,
                                    .epsilon = static_cast<float>(weights_.shape.rms_norm_eps)});
}

void CpuExecutor::execute_rope(const Op& op, int layer) {
  const ModelShape& shape = weights_.shape;
  require(op.m == inputs_.num_tokens() && op.n == shape.query_width() + 2 * shape.kv_width(), op, "has another shape");
  kernels::cpu::rope_and_cache(threads_, {.qkv = activations_.qkv.data(),
                                          .positions = inputs_.positions().data(),
                                          .slot_mapping = inputs_.slot_mapping().data(),
                                          .cos_sin = cos_sin_,
                                          .cache = kv_.layer(layer),
                                          .num_tokens = inputs_.num_tokens(),
                                          .num_heads = shape.num_attention_heads});
}

// Moves the rows whose logits are wanted to the front. They are in order, so no row is overwritten before it is read.
void CpuExecutor::keep_logits_rows() {
  const auto width = static_cast<std::size_t>(weights_.shape.hidden_size);
  std::size_t row = 0;
  for (const std::int32_t token : inputs_.logits_tokens()) {
    const auto source = static_cast<std::size_t>(token);
    if (source != row)
      for (std::vector<float>* buffer : {&activations_.residual, &activations_.projected})
        std::memcpy(buffer->data() + row * width, buffer->data() + source * width, width * sizeof(float));
    ++row;
  }
}

// What the op's name stands for: where x comes from, which weights, where y goes.
kernels::MatmulArgs CpuExecutor::bind_matmul(const Op& op, int layer) {
  const ModelShape& shape = weights_.shape;
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  Activations& buffers = activations_;
  const int tokens = inputs_.num_tokens();
  if (op.name == "qkv_proj")
    return matmul_args(buffers.normed, {weights.q_proj, weights.k_proj, weights.v_proj}, buffers.qkv, tokens,
                       shape.hidden_size);
  if (op.name == "o_proj")
    return matmul_args(buffers.attention, {weights.o_proj}, buffers.projected, tokens, shape.query_width());
  if (op.name == "gate_up_proj")
    return matmul_args(buffers.normed, {weights.gate_proj, weights.up_proj}, buffers.gate_up, tokens,
                       shape.hidden_size);
  if (op.name == "down_proj")
    return matmul_args(buffers.activated, {weights.down_proj}, buffers.projected, tokens, shape.intermediate_size);
  require(op.name == "lm_head", op, "is not a matrix of Llama");
  const int logits_rows = static_cast<int>(inputs_.logits_tokens().size());
  return matmul_args(buffers.normed, {weights_.lm_head}, buffers.logits, logits_rows, shape.hidden_size);
}

void CpuExecutor::execute_matmul(const Op& op, int layer) {
  const kernels::MatmulArgs args = bind_matmul(op, layer);
  int rows = 0;
  for (const kernels::WeightView& weight : args.weights) rows += weight.rows;
  require(op.m == args.m && op.n == rows && op.k == args.k, op, "has another shape than its weights");
  require(op.weight_format == WeightFormat{args.weights[0].dtype, 0}, op,
          "is planned in another dtype than its weights");
  kernels::cpu::matmul(threads_, workspace_, args);
}

void CpuExecutor::execute_attention(const Op& op, int layer, Phase phase) {
  const ModelShape& shape = weights_.shape;
  const AttentionInputs& inputs = inputs_.attention(phase);
  require(op.attention.num_sequences == inputs.num_seqs && op.attention.num_query_heads == shape.num_attention_heads &&
              op.attention.num_kv_heads == shape.num_key_value_heads,
          op, "has another shape");
  require(op.attention.block_size == kv_.options().block_size && op.attention.kv_dtype == kv_.options().dtype, op,
          "is planned for another KV cache");
  const int stride = shape.query_width() + 2 * shape.kv_width();
  const auto first = static_cast<std::size_t>(inputs.first_token);
  kernels::cpu::paged_attention(
      threads_, workspace_,
      {.q = activations_.qkv.data() + first * static_cast<std::size_t>(stride),
       .q_stride = stride,
       .cache = kv_.layer(layer),
       .block_tables = inputs.block_tables.data(),
       .max_blocks_per_seq = inputs.max_blocks_per_seq,
       .query_start_loc = inputs.query_start_loc.data(),
       .context_lens = inputs.context_lens.data(),
       .out = activations_.attention.data() + first * static_cast<std::size_t>(shape.query_width()),
       .num_seqs = inputs.num_seqs,
       .num_heads = shape.num_attention_heads,
       .scale = 1.0F / std::sqrt(static_cast<float>(shape.head_dim))});
}

std::string CpuExecutor::device_name() const { return "CPU, " + std::to_string(num_threads()) + " threads"; }

std::string CpuExecutor::build_name() const {
  return std::string("g++ ") + __VERSION__ + ", Highway " + std::string(kernels::cpu::vector_targets().front());
}

std::span<const float> CpuExecutor::logits(int row) const {
  const auto width = static_cast<std::size_t>(weights_.shape.vocab_size);
  return std::span(activations_.logits).subspan(static_cast<std::size_t>(row) * width, width);
}

}  // namespace dculab::engine
