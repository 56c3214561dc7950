#include "engine/executors/cpu_executor.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "engine/executors/alibi_slopes.hpp"
#include "engine/executors/head_runs.hpp"
#include "engine/executors/op_dispatch.hpp"
#include "engine/executors/thread_shortage.hpp"

namespace dculab::engine {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kHeadDimMultiple = 8;  // of the attention kernel

Seconds between(SteadyClock::time_point start, SteadyClock::time_point end) {
  return Seconds(std::chrono::duration<double>(end - start).count());
}

void require_multiple(const char* field, int value) {
  if (value % kHeadDimMultiple != 0)
    throw InputError(std::string(field) + " " + std::to_string(value) +
                     " is not supported: the CPU engine needs a multiple of " + std::to_string(kHeadDimMultiple));
}

void require_runnable(const ModelShape& shape) {
  for (const LayerKind& kind : shape.kinds) {
    if (kind.has_kv_heads()) require_multiple("head_dim", kind.gqa().heads.head_dim);
    if (const Mla* latents = kind.mla()) {
      require_multiple("kv_lora_rank", latents->kv_lora_rank);
      require_multiple("qk_rope_head_dim", latents->qk_rope_head_dim);
      require_multiple("qk_nope_head_dim", latents->qk_nope_head_dim);
      require_multiple("v_head_dim", latents->v_head_dim);
    }
  }
}

// Slopes go by the number of all heads: a part has those of its own.
std::vector<float> slopes_of(const LayerKind& kind, const RankPlace& place) {
  if (!kind.has_kv_heads()) return {};
  Gqa whole = kind.gqa();
  const auto own = static_cast<std::ptrdiff_t>(whole.heads.num_attention_heads);
  whole.heads.num_attention_heads *= place.ranks();
  const std::vector<float> slopes = alibi_slopes(whole);
  if (slopes.empty()) return {};
  return {slopes.begin() + place.rank() * own, slopes.begin() + (place.rank() + 1) * own};
}

// Large, and needed for the tokens of one phase alone.
bool is_of_latents(Buffer buffer) {
  return buffer == Buffer::expanded || buffer == Buffer::latent_queries || buffer == Buffer::latent_outputs;
}

ModelWeights runnable(ModelWeights weights) {
  require_runnable(weights.shape);
  return weights;
}

template <typename T>
void grow(std::vector<T>& buffer, int rows, int columns) {
  const auto size = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  if (buffer.size() < size) buffer.resize(size);
}

}  // namespace

CpuExecutor::CpuExecutor(ModelWeights weights, const KvCacheOptions& kv_cache, int num_threads, const RankPlace& place)
    : CpuExecutor(std::move(weights), kv_cache, std::make_shared<kernels::cpu::ThreadPool>(num_threads), place) {
  report_threads(threads_.num_threads(), num_threads);
}

CpuExecutor::CpuExecutor(ModelWeights weights, const KvCacheOptions& kv_cache,
                         std::shared_ptr<kernels::cpu::ThreadPool> threads, const RankPlace& place)
    : CpuExecutor(std::move(weights), kv_cache, std::move(threads), place, nullptr) {}

CpuExecutor::CpuExecutor(ModelWeights weights, const KvCacheOptions& kv_cache,
                         std::shared_ptr<kernels::cpu::ThreadPool> threads, const RankPlace& place,
                         const KvStorage* shared)
    : weights_(runnable(std::move(weights))),
      kv_(shared == nullptr ? KvStorage(weights_.shape, with_calibration(kv_cache, weights_))
                            : KvStorage(weights_.shape, with_calibration(kv_cache, weights_), *shared)),
      team_(std::move(threads)),
      threads_(*team_),
      kv_format_(make_cpu_kv_slice(weights_.shape, kv_cache)),
      routing_(weights_.shape),
      place_(place),
      expanded_(kv_cache.expanded_kv) {
  for (const LayerKind& kind : weights_.shape.kinds)
    positions_.push_back({.rope = RopeTable(Rotation(kind), weights_.shape.max_position_embeddings),
                          .alibi_slopes = slopes_of(kind, place_),
                          .head_runs = head_runs(kind)});
}

std::unique_ptr<ModelExecutor> CpuExecutor::with_few_heads(const ModelWeights& weights, int block_size) {
  if (place_.is_divided()) return ModelExecutor::with_few_heads(weights, block_size);
  KvCacheOptions options = kv_.options();
  options.block_size = block_size;
  return std::unique_ptr<ModelExecutor>(new CpuExecutor(weights, options, team_, place_, &kv_));
}

void CpuExecutor::make_room(int tokens, int logits_rows) {
  const ModelShape& shape = weights_.shape;
  for (std::size_t each = 0; each < kBuffers; ++each) {
    const auto buffer = static_cast<Buffer>(each);
    if (is_of_latents(buffer)) continue;
    grow(buffers_[each], buffer == Buffer::logits ? logits_rows : tokens * rows_per_token(shape, buffer),
         width(shape, buffer));
  }
  routing_.make_room(tokens);
}

float* CpuExecutor::make_rows(Buffer buffer, int rows) {
  grow(buffers_[index(buffer)], rows, width(weights_.shape, buffer));
  return values(buffer);
}

StepResult CpuExecutor::run(const StepPlan& plan) {
  const auto start = SteadyClock::now();
  begin(plan);
  for (int layer = 0; layer < weights_.shape.num_layers(); ++layer) run_layer(plan, layer);
  finish(plan);
  return {.duration = between(start, SteadyClock::now()), .op_durations = op_durations_};
}

void CpuExecutor::begin(const StepPlan& plan) {
  inputs_.fill(plan.batch, {.vocab_size = place_.is_divided() ? place_.vocab_size : weights_.shape.vocab_size,
                            .max_position_embeddings = weights_.shape.max_position_embeddings,
                            .num_blocks = kv_.options().num_blocks,
                            .block_size = kv_.options().block_size});
  begin_kv(plan);
  make_room(inputs_.num_tokens(), static_cast<int>(inputs_.logits_tokens().size()));
  for (Positions& each : positions_)
    if (each.alibi_slopes.empty()) each.cos_sin = each.rope.rows(inputs_.num_positions());
  op_durations_.assign(plan.ops.size(), Seconds());
  charged_op_.reset();
  run_stage(plan, Stage::before_layers, 0);
}

void CpuExecutor::run_layer(const StepPlan& plan, int layer) { run_stage(plan, Stage::layer, layer); }

void CpuExecutor::finish(const StepPlan& plan) {
  if (keeps_all_hidden_) norm_all_hidden();
  run_stage(plan, Stage::after_layers, 0);
}

CpuExecutor::HiddenState CpuExecutor::hidden_state() const {
  const auto copy = [this](Buffer buffer) {
    const std::vector<float>& from = buffers_[index(buffer)];
    return std::vector<float>(
        from.begin(), from.begin() + static_cast<std::ptrdiff_t>(inputs_.num_tokens()) * width(weights_.shape, buffer));
  };
  return {copy(Buffer::residual), copy(Buffer::projected), copy(Buffer::mlp_projected)};
}

void CpuExecutor::set_hidden_state(const HiddenState& state) {
  std::ranges::copy(state.residual, values(Buffer::residual));
  std::ranges::copy(state.projected, values(Buffer::projected));
  std::ranges::copy(state.mlp_projected, values(Buffer::mlp_projected));
}

void CpuExecutor::run_stage(const StepPlan& plan, Stage stage, int layer) {
  first_op_ = plan.ops.data();
  charged_until_ = SteadyClock::now();
  walk_stage(plan, weights_.shape, stage, layer, [&](std::size_t index) {
    OpDispatch::run(*this, plan.ops[index], weights_.shape, layer);
    charge(plan.ops[index]);
  });
}

void CpuExecutor::charge(const Op& op) {
  const auto now = SteadyClock::now();
  charged_op_ = static_cast<std::size_t>(&op - first_op_);
  op_durations_[*charged_op_] += between(std::exchange(charged_until_, now), now);
}

void CpuExecutor::observe(const Op& op, int layer) const {
  if (!observer_) return;
  const int rows = rows_of(op) * rows_per_token(layer_of(op, weights_.shape), op.input);
  const auto count = static_cast<std::size_t>(rows) *
                     static_cast<std::size_t>(width(weights_.shape, layer_of(op, weights_.shape), op.input));
  observer_(op, layer, std::span(buffers_[index(op.input)]).first(count));
}

void CpuExecutor::execute_embedding(const Op& op) {
  require(op.m == inputs_.num_tokens() && op.n == weights_.shape.hidden_size, op, "has another shape");
  if (place_.is_divided()) return execute_partial_embedding(op);
  kernels::cpu::embedding(threads_, {.token_ids = inputs_.token_ids().data(),
                                     .table = weights_.outer[WeightSlot::embed_tokens].weights[0],
                                     .out = values(op.output),
                                     .num_tokens = inputs_.num_tokens(),
                                     .width = weights_.shape.hidden_size,
                                     .scale = static_cast<float>(weights_.shape.embedding_scale)});
}

void CpuExecutor::execute_rope_and_cache(const Op& op, int layer) {
  require(op.m == inputs_.num_tokens(), op, "has another shape");
  require_buffers(op, weights_.shape);
  const Gqa& attention = layer_of(op, weights_.shape).gqa();
  observe(op, layer);
  kernels::KvCacheView cache = kv_.layer(layer);
  if (attention.shares_kv) cache.num_kv_heads = 0;  // the rows are of Q alone, and nothing is written
  kernels::RopeAndCacheArgs args{.qkv = values(op.output),
                                 .positions = inputs_.positions().data(),
                                 .slot_mapping = inputs_.slot_mapping().data(),
                                 .cos_sin = positions_[op.layer_kind].cos_sin,
                                 .cache = cache,
                                 .num_tokens = inputs_.num_tokens(),
                                 .num_heads = attention.heads.num_attention_heads,
                                 .rotary_dim = attention.position.rotary_dim,
                                 .neighbours = attention.position.pairs == RopePairs::neighbours};
  for (CpuKvSlice* slice : kv_slices_) slice->before_cache(args, layer);
  kernels::cpu::rope_and_cache(threads_, args);
  for (CpuKvSlice* slice : kv_slices_) slice->after_cache(kv_layer(op, layer));
}

void CpuExecutor::check_attention(const Op& op, int num_seqs) const {
  const Heads& heads = layer_of(op, weights_.shape).gqa().heads;
  require(op.attention.num_sequences == num_seqs && op.attention.num_query_heads == heads.num_attention_heads &&
              op.attention.num_kv_heads == heads.num_key_value_heads,
          op, "has another shape");
  require(op.attention.block_size == kv_.options().block_size && op.attention.kv_dtype == kv_.options().dtype, op,
          "is planned for another KV cache");
}

kernels::PagedAttentionArgs CpuExecutor::bind_attention(const Op& op, int layer, Phase phase) {
  const Gqa& attention = layer_of(op, weights_.shape).gqa();
  const Heads& heads = attention.heads;
  const std::vector<float>& slopes = positions_[op.layer_kind].alibi_slopes;
  const AttentionInputs& inputs = inputs_.attention(phase);
  const int stride = attention.projected_width();
  const auto first = static_cast<std::size_t>(inputs.first_token);
  kernels::PagedAttentionArgs args{
      .q = buffers_[index(Buffer::qkv)].data() + first * static_cast<std::size_t>(stride),
      .q_stride = stride,
      .cache = kv_.layer(layer),
      .block_tables = inputs.block_tables.data(),
      .max_blocks_per_seq = inputs.max_blocks_per_seq,
      .query_start_loc = inputs.query_start_loc.data(),
      .context_lens = inputs.context_lens.data(),
      .out = values(Buffer::attention) + first * static_cast<std::size_t>(heads.query_width()),
      .num_seqs = inputs.num_seqs,
      .num_heads = heads.num_attention_heads,
      .scale = static_cast<float>(attention.score_scale()),
      .logit_soft_cap = static_cast<float>(attention.logit_soft_cap),
      .alibi_slopes = slopes.empty() ? nullptr : slopes.data(),
      .sliding_window = attention.sliding_window,
      .tree = inputs.trees()};
  const KeyRotation rotation{.cos_sin = positions_[op.layer_kind].cos_sin,
                             .rotary_dim = attention.position.rotary_dim,
                             .neighbours = attention.position.pairs == RopePairs::neighbours};
  for (const CpuKvSlice* slice : kv_slices_) slice->bind(args, phase, rotation);
  return args;
}

void CpuExecutor::execute_attention(const Op& op, int layer, Phase phase) {
  check_attention(op, inputs_.attention(phase).num_seqs);
  observe(op, layer);
  kernels::PagedAttentionArgs args = bind_attention(op, layer, phase);
  for (const CpuKvSlice* slice : kv_slices_) slice->narrow(args, phase);
  const std::vector<HeadRun>& runs = positions_[op.layer_kind].head_runs;
  for (const HeadRun& run : runs) kernels::cpu::paged_attention(threads_, workspace_, of_run(args, run));
  if (runs.empty()) kernels::cpu::paged_attention(threads_, workspace_, args);
  for (CpuKvSlice* slice : kv_slices_) slice->after_attention(kv_layer(op, layer), phase);
}

std::string CpuExecutor::device_name() const { return "CPU, " + std::to_string(num_threads()) + " threads"; }

std::string CpuExecutor::build_name() const {
  return std::string("g++ ") + __VERSION__ + ", Highway " + std::string(kernels::cpu::vector_targets().front());
}

std::span<const float> CpuExecutor::logits(int row) const {
  const bool gathered = place_.is_divided();
  const auto columns = static_cast<std::size_t>(gathered ? place_.vocab_size : weights_.shape.vocab_size);
  return std::span(gathered ? gathered_logits_ : buffers_[index(Buffer::logits)])
      .subspan(static_cast<std::size_t>(row) * columns, columns);
}

}  // namespace dculab::engine
