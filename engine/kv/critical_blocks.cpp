#include "engine/kv/critical_blocks.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>

#include "kernels/cpu/kv/kv_kernels.hpp"

namespace dculab::engine {
namespace {

[[nodiscard]] kernels::BlockBounds* bounds_of(const CpuKvLayer& layer) {
  return reinterpret_cast<kernels::BlockBounds*>(layer.beside_blocks);
}

template <class T>
void reserve_values(std::vector<T>& values, std::size_t size) {
  if (values.size() < size) values.resize(size);
}

}  // namespace

void CriticalBlocks::begin(const StepPlan& plan, int block_size) {
  for (std::vector<std::int32_t>& starts : written_) starts.assign(1, 0);
  budgets_.clear();
  has_chosen_ = false;
  recent_blocks_ = plan.kv_retention.recent_blocks;
  for (const SequenceSlice& slice : plan.batch.sequences) add_sequence(slice, plan.kv_retention, block_size);
  make_room();
}

void CriticalBlocks::add_sequence(const SequenceSlice& slice, const KvRetention& retention, int block_size) {
  std::vector<std::int32_t>& starts = written_[static_cast<std::size_t>(slice.phase)];
  starts.push_back(starts.back() + slice.num_new_tokens - slice.num_unwritten_tokens);
  if (slice.phase == Phase::decode)
    budgets_.push_back(kv_blocks_loaded(retention, (slice.context_tokens() + block_size - 1) / block_size));
}

void CriticalBlocks::make_room() {
  const int stride = budgets_.empty() ? 0 : *std::ranges::max_element(budgets_);
  const std::size_t lists = budgets_.size() * static_cast<std::size_t>(num_kv_heads_);
  reserve_values(queries_, budgets_.size() * static_cast<std::size_t>(query_width_));
  reserve_values(places_, lists * static_cast<std::size_t>(stride));
  reserve_values(tables_, lists * static_cast<std::size_t>(stride));
  reserve_values(contexts_, lists);
  reserve_values(starts_, lists + 1);
  chosen_ = {.stride = stride,
             .places = places_.data(),
             .block_tables = tables_.data(),
             .context_lens = contexts_.data(),
             .query_start_loc = starts_.data(),
             .queries = queries_.data()};
}

void CriticalBlocks::execute(const Op& op, const CpuKvLayer& layer) {
  if (layer.beside_blocks == nullptr)
    throw std::invalid_argument("plan: " + std::string(op.name) + " needs a KV cache with bounds of its keys");
  if (op.kind == OpKind::update_block_bounds) return update(op, layer);
  if (op.kind == OpKind::choose_critical_blocks) return choose(op, layer);
  CpuKvSlice::execute(op, layer);
}

void CriticalBlocks::update(const Op& op, const CpuKvLayer& layer) {
  std::int64_t tokens = 0;
  for (const Phase phase : {Phase::prefill, Phase::decode}) {
    const kernels::PagedAttentionArgs attention = layer.of(phase);
    const std::vector<std::int32_t>& starts = written_[static_cast<std::size_t>(phase)];
    tokens += starts.back();
    if (starts.back() == 0) continue;
    kernels::cpu::update_block_bounds(layer.threads, {.cache = attention.cache,
                                                      .bounds = bounds_of(layer),
                                                      .block_tables = attention.block_tables,
                                                      .max_blocks_per_seq = attention.max_blocks_per_seq,
                                                      .query_start_loc = starts.data(),
                                                      .context_lens = attention.context_lens,
                                                      .num_seqs = attention.num_seqs});
  }
  if (op.m != tokens) throw std::invalid_argument("plan: " + std::string(op.name) + " has another shape");
}

void CriticalBlocks::choose(const Op& op, const CpuKvLayer& layer) {
  const kernels::PagedAttentionArgs attention = layer.of(Phase::decode);
  if (op.m != attention.num_seqs || op.n != query_width_)
    throw std::invalid_argument("plan: " + std::string(op.name) + " has another shape");
  reserve_values(upper_bounds_, contexts_.size() * static_cast<std::size_t>(attention.max_blocks_per_seq));
  kernels::cpu::choose_critical_blocks(layer.threads, layer.workspace,
                                       {.q = attention.q,
                                        .q_stride = attention.q_stride,
                                        .cache = attention.cache,
                                        .bounds = bounds_of(layer),
                                        .block_tables = attention.block_tables,
                                        .max_blocks_per_seq = attention.max_blocks_per_seq,
                                        .context_lens = attention.context_lens,
                                        .budgets = budgets_.data(),
                                        .num_seqs = attention.num_seqs,
                                        .num_heads = attention.num_heads,
                                        .recent_blocks = recent_blocks_,
                                        .upper_bounds = upper_bounds_.data(),
                                        .chosen = chosen_});
  has_chosen_ = true;
}

void CriticalBlocks::narrow(kernels::PagedAttentionArgs& args, Phase phase) const {
  if (phase != Phase::decode) return;
  if (!has_chosen_) throw std::invalid_argument("plan: attention over critical blocks that nobody has chosen");
  args = kernels::over_chosen_blocks(args, chosen_);
}

}  // namespace dculab::engine
