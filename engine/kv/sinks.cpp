#include "engine/kv/sinks.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace dculab::engine {

SinkKeys::SinkKeys(const ModelShape& shape)
    : num_layers_(shape.num_layers()),
      query_width_(shape.heads().query_width()),
      kv_width_(shape.heads().kv_width()),
      position_(shape.kinds.front().gqa().position),
      no_rotation_(static_cast<std::size_t>(shape.heads().head_dim), 0.0F) {
  std::fill_n(no_rotation_.begin(), shape.heads().head_dim / 2, 1.0F);
}

void SinkKeys::begin(const StepPlan& plan, int block_size) {
  const Batch& batch = plan.batch;
  arrivals_.clear();
  moving_.clear();
  positions_.clear();
  slots_.clear();
  sink_tokens_ = plan.kv_retention.sink_tokens;
  int token = 0;
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const SequenceSlice& slice = batch.sequences[i];
    if (slice.first_position() < sink_tokens_) add_arrival(slice, token);
    if (slice.num_newly_evicted_tokens > 0) add_move(slice, batch.block_tables[i], block_size);
    token += slice.num_new_tokens;
  }
  rows_.resize(positions_.size() * static_cast<std::size_t>(2 * kv_width_));
}

void SinkKeys::add_arrival(const SequenceSlice& slice, int first_token) {
  Rows& rows = kept_[slice.id];
  const std::ptrdiff_t width = 2 * kv_width_;
  rows.resize(num_kept_values());
  arrivals_.push_back({.to = rows.data() + slice.first_position() * width,
                       .first_token = first_token,
                       .count = std::min(slice.num_new_tokens, sink_tokens_ - slice.first_position())});
}

void SinkKeys::add_move(const SequenceSlice& slice, const std::vector<BlockId>& blocks, int block_size) {
  if (makes_up_) kept_[slice.id].resize(num_kept_values());
  const auto found = kept_.find(slice.id);
  if (found == kept_.end() || found->second.size() != num_kept_values())
    throw std::invalid_argument("batch: the attention sinks of sequence " + std::to_string(slice.id) +
                                " have not been computed here");
  moving_.push_back(found->second.data());
  for (int sink = 0; sink < sink_tokens_; ++sink) {
    positions_.push_back(position_.kind == PositionKind::rope ? slice.num_evicted_tokens + sink : 0);
    const std::int64_t block = blocks[static_cast<std::size_t>(sink / block_size)];
    slots_.push_back(block * block_size + sink % block_size);
  }
}

void SinkKeys::keep(int layer, const float* qkv) {
  const std::ptrdiff_t kept_width = 2 * kv_width_, width = query_width_ + kept_width;
  for (const Arrival& arrival : arrivals_) {
    float* to = arrival.to + std::ptrdiff_t{layer} * sink_tokens_ * kept_width;
    for (int token = 0; token < arrival.count; ++token)
      std::copy_n(qkv + (arrival.first_token + token) * width + query_width_, kept_width, to + token * kept_width);
  }
}

void SinkKeys::execute(const Op& op, const CpuKvLayer& layer) {
  if (op.kind != OpKind::shift_sink_keys || op.m != num_moving() || op.n != 2 * kv_width_)
    throw std::invalid_argument("plan: " + std::string(op.name) + " has another shape");
  const std::ptrdiff_t values = std::ptrdiff_t{sink_tokens_} * 2 * kv_width_;  // of one layer of one sequence
  float* to = rows_.data();
  for (const float* from : moving_) to = std::copy_n(from + layer.layer * values, values, to);
  kernels::cpu::rope_and_cache(layer.threads,
                               {.qkv = rows_.data(),
                                .positions = positions_.data(),
                                .slot_mapping = slots_.data(),
                                .cos_sin = position_.kind == PositionKind::rope ? layer.cos_sin : no_rotation_.data(),
                                .cache = layer.of(Phase::decode).cache,
                                .num_tokens = num_moving(),
                                .num_heads = 0,
                                .rotary_dim = position_.rotary_dim,
                                .neighbours = position_.pairs == RopePairs::neighbours});
}

}  // namespace dculab::engine
