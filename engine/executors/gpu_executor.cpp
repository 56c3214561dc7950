#include "engine/executors/gpu_executor.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "engine/checkpoint/stored_values.hpp"
#include "engine/executors/alibi_slopes.hpp"
#include "engine/executors/gpu_draft_heads.hpp"
#include "engine/executors/gpu_requirements.hpp"
#include "engine/executors/op_dispatch.hpp"
#include "engine/executors/rope_table.hpp"
#include "engine/step/gpu_attention.hpp"
#include "lower/dculab_gpu/kernels.hpp"

namespace dculab::engine {
namespace {

using kernels::gpu::Input;
using kernels::gpu::Output;
using SteadyClock = std::chrono::steady_clock;

[[nodiscard]] const ModelWeights& runnable(const ModelWeights& weights, const GpuExecutorOptions& options) {
  require_gpu_runnable(weights.shape, options.activation_dtype, options.activations);
  return weights;
}

[[nodiscard]] DeviceMemory upload_slopes(const std::shared_ptr<kernels::gpu::Device>& device, const LayerKind& kind) {
  const std::vector<float> slopes = kind.has_kv_heads() ? alibi_slopes(kind.gqa()) : std::vector<float>();
  if (slopes.empty()) return {};
  DeviceMemory memory(device, slopes.size() * sizeof(float));
  device->upload(memory.as(), slopes.data(), slopes.size() * sizeof(float));
  device->synchronize();
  return memory;
}

[[nodiscard]] std::vector<GpuPositions> upload_positions(const std::shared_ptr<kernels::gpu::Device>& device,
                                                         const ModelShape& shape) {
  std::vector<GpuPositions> positions;
  for (const LayerKind& kind : shape.kinds)
    positions.push_back({.cos_sin = {}, .alibi_slopes = upload_slopes(device, kind)});
  return positions;
}

[[nodiscard]] int blocks_of_longest(const ModelShape& shape, const KvCacheOptions& kv) {
  return std::min(kv.num_blocks, (shape.max_position_embeddings + kv.block_size - 1) / kv.block_size);
}

[[nodiscard]] int longest_cached(const ModelShape& shape, const KvCacheOptions& kv) {
  const std::int64_t cached = std::int64_t{kv.num_blocks} * kv.block_size;
  return static_cast<int>(std::min<std::int64_t>(shape.max_position_embeddings, cached));
}

}  // namespace

GpuExecutor::GpuExecutor(std::shared_ptr<kernels::gpu::Device> device, const ModelWeights& weights,
                         const KvCacheOptions& kv_cache, const GpuExecutorOptions& options)
    : device_(std::move(device)),
      shape_(runnable(weights, options).shape),
      options_(options),
      weights_(upload_weights(device_, weights)),
      kv_(device_, shape_, with_calibration(kv_cache, weights)),
      activations_(device_, shape_, options.activation_dtype, options.limits),
      max_blocks_per_seq_(blocks_of_longest(shape_, kv_cache)),
      device_inputs_(device_, options.limits, max_blocks_per_seq_),
      positions_(upload_positions(device_, shape_)),
      routing_(device_, shape_, options.limits.max_num_batched_tokens),
      expanded_(device_, shape_, options.activation_dtype, longest_cached(shape_, kv_cache),
                options.limits.expanded_kv),
      workspace_floats_(
          gpu_workspace_floats(shape_, options.limits, options.partition_tokens, longest_cached(shape_, kv_cache))),
      workspace_(device_, workspace_floats_ * sizeof(float)),
      logits_(static_cast<std::size_t>(logits_rows(options.limits)) * static_cast<std::size_t>(shape_.vocab_size)) {
  reach_positions(shape_.max_position_embeddings);
}

GpuExecutor::~GpuExecutor() = default;

std::string GpuExecutor::build_name() const {
  return "GPU kernels, waves of " + std::to_string(device_->info().wave_size) + ", activations " +
         std::string(name(options_.activation_dtype));
}

StepResult GpuExecutor::run(const StepPlan& plan) {
  const auto start = SteadyClock::now();
  plan_ = &plan;
  fill_inputs(plan);
  latent_phase_ = inputs_.attention(Phase::prefill).num_seqs > 0 ? Phase::prefill : Phase::decode;
  routing_.begin_step();
  marked_ops_.clear();
  run_stage(plan, Stage::before_layers, 0);
  for (int layer = 0; layer < shape_.num_layers(); ++layer) run_stage(plan, Stage::layer, layer);
  run_stage(plan, Stage::after_layers, 0);
  if (timing_ == OpTiming::on) record_mark();
  const std::size_t rows = inputs_.logits_tokens().size();
  if (rows > 0)
    device_->download(logits_.data(), activations_[Buffer::logits].as(),
                      rows * static_cast<std::size_t>(shape_.vocab_size) * sizeof(float));
  device_->synchronize();
  routing_.end_step();
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
      static_cast<int>(plan.batch.sequences.size()) > options_.limits.max_num_seqs ||
      static_cast<int>(inputs_.logits_tokens().size()) > logits_rows(options_.limits) ||
      longest_query(inputs_.attention(Phase::decode)) > options_.limits.decode_tokens ||
      (!inputs_.attention(Phase::decode).tree_sizes.empty() && options_.limits.decode_tokens == 1))
    throw std::invalid_argument("plan: the batch is larger than the executor was made for");
  for (const Phase phase : {Phase::prefill, Phase::decode})
    if (inputs_.attention(phase).max_blocks_per_seq > max_blocks_per_seq_)
      throw std::invalid_argument("plan: a block table is longer than any sequence can be");
  reach_positions(inputs_.num_positions());
  device_inputs_.upload(inputs_);
  begin_kv(plan);
}

// Beyond those that the model was trained on where tokens stand within the cache: a text goes on then.
void GpuExecutor::reach_positions(int count) {
  if (count <= num_positions_) return;
  num_positions_ = std::max(count, 2 * num_positions_);
  for (std::size_t kind = 0; kind < positions_.size(); ++kind) {
    const Rotation rotation(shape_.kinds[kind]);
    if (rotation.position.kind != PositionKind::rope) continue;
    RopeTable table(rotation, shape_.max_position_embeddings);
    const std::size_t bytes =
        static_cast<std::size_t>(num_positions_) * static_cast<std::size_t>(rotation.rotary_dim) * sizeof(float);
    positions_[kind].cos_sin = DeviceMemory(device_, bytes);
    device_->upload(positions_[kind].cos_sin.as(), table.rows(num_positions_), bytes);
    device_->synchronize();
  }
}

void GpuExecutor::run_stage(const StepPlan& plan, Stage stage, int layer) {
  walk_stage(plan, shape_, stage, layer, [&](std::size_t index) {
    begin_op(index);
    OpDispatch::run(*this, plan.ops[index], shape_, layer);
  });
}

void GpuExecutor::begin_op(std::size_t index) {
  if (timing_ == OpTiming::on) record_mark();
  marked_ops_.push_back(index);
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

void GpuExecutor::execute_embedding(const Op& op) {
  require(op.m == inputs_.num_tokens() && op.n == shape_.hidden_size, op, "has another shape");
  device_->embedding({.token_ids = device_inputs_.token_ids.as<std::int32_t>(),
                      .table = weights_.embed_tokens,
                      .out = output(op.output),
                      .num_tokens = inputs_.num_tokens(),
                      .width = shape_.hidden_size,
                      .scale = static_cast<float>(shape_.embedding_scale)});
}

void GpuExecutor::rotate(const Op& op) {
  const Gqa& attention = layer_of(op, shape_).gqa();
  const Heads& heads = attention.heads;
  const int num_kv_heads = attention.shares_kv ? 0 : heads.num_key_value_heads;
  if (attention.position.kind != PositionKind::rope) return;
  const auto* const positions = device_inputs_.positions.as<std::int32_t>();
  const auto* const cos_sin = positions_[op.layer_kind].cos_sin.as<float>();
  const bool neighbours = attention.position.pairs == RopePairs::neighbours;
  if (!neighbours && attention.rotary_dim() == heads.head_dim)
    return device_->rotary_embedding({.qkv = output(op.output),
                                      .positions = positions,
                                      .cos_sin = cos_sin,
                                      .num_tokens = inputs_.num_tokens(),
                                      .num_heads = heads.num_attention_heads,
                                      .num_kv_heads = num_kv_heads,
                                      .head_dim = heads.head_dim});
  device_->part_rotary_embedding({.qkv = output(op.output),
                                  .positions = positions,
                                  .cos_sin = cos_sin,
                                  .num_tokens = inputs_.num_tokens(),
                                  .num_heads = heads.num_attention_heads,
                                  .num_kv_heads = num_kv_heads,
                                  .head_dim = heads.head_dim,
                                  .rotary_dim = attention.rotary_dim(),
                                  .neighbours = neighbours});
}

void GpuExecutor::execute_rope_and_cache(const Op& op, int layer) {
  const Gqa& attention = layer_of(op, shape_).gqa();
  const Heads& heads = attention.heads;
  require(op.m == inputs_.num_tokens(), op, "has another shape");
  require_buffers(op, shape_);
  const Output k = at(Buffer::qkv, heads.query_width());
  if (kv_slice_ != nullptr) kv_slice_->before_rotation({{k.data, k.dtype}, op.n}, layer);
  rotate(op);
  if (attention.shares_kv) return;  // K and V of this step are in the source's cache already
  if (kv_slice_ != nullptr && kv_slice_->write_cache(kv_layer_of(op, layer))) return;
  const Output v = at(Buffer::qkv, heads.query_width() + heads.kv_width());
  kernels::gpu::ReshapeAndCache args{.k = {k.data, k.dtype},
                                     .v = {v.data, v.dtype},
                                     .kv_stride = static_cast<int>(op.n),
                                     .slot_mapping = device_inputs_.slot_mapping.as<std::int64_t>(),
                                     .cache = kv_.layer(layer),
                                     .num_tokens = inputs_.num_tokens()};
  if (kv_slice_ != nullptr) kv_slice_->before_cache(args, layer);
  device_->reshape_and_cache(args);
}

void GpuExecutor::execute_attention(const Op& op, int layer, Phase phase) {
  const AttentionInputs& inputs = inputs_.attention(phase);
  const Gqa& layer_attention = layer_of(op, shape_).gqa();
  require(op.attention.num_sequences == inputs.num_seqs &&
              op.attention.num_query_heads == layer_attention.heads.num_attention_heads &&
              op.attention.num_kv_heads == layer_attention.heads.num_key_value_heads,
          op, "has another shape");
  require(plan_->attention_split.partition_tokens == options_.partition_tokens, op, "is split otherwise");
  require(op.attention.block_size == kv_.options().block_size && op.attention.kv_dtype == kv_.options().dtype, op,
          "is planned for another KV cache");
  const GpuAttention attention =
      attention_of(op, layer, phase, lower::dculab_gpu::attention_tile(op, plan_->attention_split));
  if (phase == Phase::prefill)
    device_->prefill_attention(attention.prefill());
  else
    for_decode_runs(inputs, [&](int first, int count) {
      kernels::gpu::PagedAttention args = attention.decode(first, count);
      if (kv_slice_ != nullptr) kv_slice_->narrow(args, first);
      device_->paged_attention(args);
    });
  if (kv_slice_ != nullptr) kv_slice_->after_attention(attention, phase);
}

// Those up to the last that is wanted: one transfer.
void GpuExecutor::copy_last_hidden(std::span<const int> rows, std::span<float> out) const {
  if (rows.empty()) return;
  const auto columns = static_cast<std::size_t>(shape_.hidden_size);
  const auto row_bytes = columns * static_cast<std::size_t>(bits(options_.activation_dtype)) / 8;
  std::vector<std::byte> normed((static_cast<std::size_t>(std::ranges::max(rows)) + 1) * row_bytes);
  device_->download(normed.data(), activations_[Buffer::normed].as(), normed.size());
  device_->synchronize();
  for (std::size_t i = 0; i < rows.size(); ++i)
    widen(normed.data() + static_cast<std::size_t>(rows[i]) * row_bytes, options_.activation_dtype,
          out.subspan(i * columns, columns));
}

std::unique_ptr<DraftHeads> GpuExecutor::make_draft_heads(const MedusaWeights& weights) {
  return std::make_unique<GpuDraftHeads>(device_, weights, options_.activation_dtype);
}

std::span<const float> GpuExecutor::logits(int row) const {
  const auto width = static_cast<std::size_t>(shape_.vocab_size);
  return std::span(logits_).subspan(static_cast<std::size_t>(row) * width, width);
}

}  // namespace dculab::engine
