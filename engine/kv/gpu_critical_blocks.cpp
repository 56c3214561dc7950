#include "engine/kv/gpu_critical_blocks.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernels/gpu/kv/critical_blocks.hpp"
#include "model/attention_work.hpp"

namespace dculab::engine {
namespace {

[[nodiscard]] kernels::BlockBounds* bounds_of(const GpuKvLayer& layer) {
  return reinterpret_cast<kernels::BlockBounds*>(layer.beside_blocks);
}

constexpr std::array kPhases{Phase::prefill, Phase::decode};

}  // namespace

GpuCriticalBlocks::GpuCriticalBlocks(std::shared_ptr<kernels::gpu::Device> device, const ModelShape& shape,
                                     const GpuStepLimits& limits, int max_blocks_per_seq)
    : device_(std::move(device)),
      max_num_seqs_(limits.max_num_seqs),
      max_blocks_per_seq_(max_blocks_per_seq),
      num_kv_heads_(shape.heads().num_key_value_heads),
      query_width_(shape.heads().query_width()),
      device_budgets_(device_, sizeof(std::int32_t) * static_cast<std::size_t>(limits.max_num_seqs)),
      upper_bounds_(device_, sizeof(float) * num_lists() * static_cast<std::size_t>(max_blocks_per_seq)),
      contexts_(device_, sizeof(std::int32_t) * num_lists()),
      queries_(device_,
               sizeof(float) * static_cast<std::size_t>(query_width_) * static_cast<std::size_t>(limits.max_num_seqs)) {
  for (DeviceMemory& starts : device_written_)
    starts = DeviceMemory(device_, sizeof(std::int32_t) * (static_cast<std::size_t>(limits.max_num_seqs) + 1));
}

void GpuCriticalBlocks::begin(const StepPlan& plan, int block_size) {
  for (std::vector<std::int32_t>& starts : written_) starts.assign(1, 0);
  budgets_.clear();
  longest_written_ = {}, stride_ = longest_chosen_ = 0;
  chosen_ = {};
  recent_blocks_ = plan.kv_retention.recent_blocks;
  make_room(plan.kv_retention);
  for (const SequenceSlice& slice : plan.batch.sequences) add_sequence(slice, plan.kv_retention, block_size);
  for (const Phase phase : kPhases)
    upload_values(*device_, device_written_[static_cast<std::size_t>(phase)],
                  written_[static_cast<std::size_t>(phase)]);
  upload_values(*device_, device_budgets_, budgets_);
}

// Once, as long as the policy's figures stay.
void GpuCriticalBlocks::make_room(const KvRetention& retention) {
  const int listed = kv_blocks_loaded(retention, max_blocks_per_seq_);
  if (listed == listed_blocks_) return;
  listed_blocks_ = listed;
  device_->synchronize();  // what runs may use it
  tables_ = DeviceMemory(device_, sizeof(std::int32_t) * num_lists() * static_cast<std::size_t>(listed));
}

void GpuCriticalBlocks::add_sequence(const SequenceSlice& slice, const KvRetention& retention, int block_size) {
  const auto phase = static_cast<std::size_t>(slice.phase);
  const int written = slice.num_new_tokens - slice.num_unwritten_tokens;
  written_[phase].push_back(written_[phase].back() + written);
  longest_written_[phase] = std::max(longest_written_[phase], written);
  if (slice.phase != Phase::decode) return;
  const int context = slice.context_tokens();
  budgets_.push_back(kv_blocks_loaded(retention, blocks_of(0, context, block_size)));
  stride_ = std::max(stride_, budgets_.back());
  longest_chosen_ = std::max(longest_chosen_, kv_tokens_loaded(retention, block_size, context));
}

void GpuCriticalBlocks::execute(const Op& op, const GpuKvLayer& layer) {
  if (layer.beside_blocks == nullptr)
    throw std::invalid_argument("plan: " + std::string(op.name) + " needs a KV cache with bounds of its keys");
  if (op.kind == OpKind::update_block_bounds) return update(op, layer);
  if (op.kind == OpKind::choose_critical_blocks) return choose(op, layer);
  GpuKvSlice::execute(op, layer);
}

void GpuCriticalBlocks::update(const Op& op, const GpuKvLayer& layer) {
  std::int64_t tokens = 0;
  for (const Phase phase : kPhases) {
    const GpuAttention& attention = layer.of(phase);
    const auto index = static_cast<std::size_t>(phase);
    tokens += written_[index].back();
    if (written_[index].back() == 0) continue;
    device_->update_block_bounds({.cache = attention.cache,
                                  .bounds = bounds_of(layer),
                                  .block_tables = attention.on_device.block_tables.as<std::int32_t>(),
                                  .max_blocks_per_seq = attention.inputs.max_blocks_per_seq,
                                  .query_start_loc = device_written_[index].as<std::int32_t>(),
                                  .context_lens = attention.on_device.context_lens.as<std::int32_t>(),
                                  .num_seqs = attention.inputs.num_seqs,
                                  .max_tokens_per_seq = longest_written_[index]});
  }
  if (op.m != tokens) throw std::invalid_argument("plan: " + std::string(op.name) + " has another shape");
}

void GpuCriticalBlocks::choose(const Op& op, const GpuKvLayer& layer) {
  const GpuAttention& attention = layer.of(Phase::decode);
  if (op.m != attention.inputs.num_seqs || op.n != query_width_)
    throw std::invalid_argument("plan: " + std::string(op.name) + " has another shape");
  chosen_ = {.stride = stride_,
             .block_tables = tables_.as<std::int32_t>(),
             .context_lens = contexts_.as<std::int32_t>(),
             .queries = queries_.as()};
  device_->choose_critical_blocks({.q = attention.queries(),
                                   .q_stride = attention.layer.projected_width(),
                                   .cache = attention.cache,
                                   .bounds = bounds_of(layer),
                                   .block_tables = attention.on_device.block_tables.as<std::int32_t>(),
                                   .max_blocks_per_seq = attention.inputs.max_blocks_per_seq,
                                   .context_lens = attention.on_device.context_lens.as<std::int32_t>(),
                                   .max_context_len = longest_context(attention.inputs),
                                   .budgets = device_budgets_.as<std::int32_t>(),
                                   .num_seqs = attention.inputs.num_seqs,
                                   .num_heads = attention.layer.heads.num_attention_heads,
                                   .recent_blocks = recent_blocks_,
                                   .upper_bounds = upper_bounds_.as<float>(),
                                   .chosen = chosen_});
}

void GpuCriticalBlocks::narrow(kernels::gpu::PagedAttention& args, int first) const {
  if (chosen_.block_tables == nullptr)
    throw std::invalid_argument("plan: attention over critical blocks that nobody has chosen");
  const std::ptrdiff_t list = std::ptrdiff_t{first} * num_kv_heads_;
  kernels::ChosenBlocks chosen = chosen_;
  chosen.block_tables += list * chosen.stride;
  chosen.context_lens += list;
  chosen.queries =
      static_cast<std::byte*>(chosen.queries) + std::ptrdiff_t{first} * query_width_ * bits(args.q.dtype) / 8;
  args = kernels::gpu::over_chosen_blocks(args, chosen, longest_chosen_);
}

}  // namespace dculab::engine
