#include "engine/kv/gpu_sinks.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

namespace dculab::engine {
GpuSinkKeys::GpuSinkKeys(std::shared_ptr<kernels::gpu::Device> device, const ModelShape& shape,
                         const GpuStepLimits& limits)
    : device_(std::move(device)),
      limits_(limits),
      num_layers_(shape.num_layers()),
      kv_width_(shape.heads().kv_width()),
      position_(shape.kinds.front().gqa().position) {}

void GpuSinkKeys::begin(const StepPlan& plan, int block_size) {
  const Batch& batch = plan.batch;
  if (sink_tokens_ != plan.kv_retention.sink_tokens) {
    sink_tokens_ = plan.kv_retention.sink_tokens;
    make_room();
  }
  arriving_.clear();
  arrivals_.clear();
  moving_.clear();
  positions_.clear();
  slots_.clear();
  int token = 0;
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const SequenceSlice& slice = batch.sequences[i];
    if (slice.first_position() < sink_tokens_) add_arrival(slice, token);
    if (slice.num_newly_evicted_tokens > 0) add_move(slice, batch.block_tables[i], block_size);
    token += slice.num_new_tokens;
  }
  upload_values(*device_, device_arriving_, arriving_);
  upload_values(*device_, device_arrivals_, arrivals_);
  upload_values(*device_, device_moving_, moving_);
  upload_values(*device_, device_positions_, positions_);
  upload_values(*device_, device_slots_, slots_);
}

// For as many sinks as a step can have. What was kept with another number of them is of no use.
void GpuSinkKeys::make_room() {
  kept_.clear();
  spare_.clear();
  const auto sinks = static_cast<std::size_t>(limits_.max_num_seqs) * static_cast<std::size_t>(sink_tokens_);
  device_arriving_ = DeviceMemory(device_, sinks * sizeof(std::int32_t));
  device_arrivals_ = DeviceMemory(device_, sinks * sizeof(float*));
  device_moving_ = DeviceMemory(device_, sinks * sizeof(float*));
  device_positions_ = DeviceMemory(device_, sinks * sizeof(std::int32_t));
  device_slots_ = DeviceMemory(device_, sinks * sizeof(std::int64_t));
}

float* GpuSinkKeys::rows_of(SequenceId id) {
  const auto [place, is_new] = kept_.try_emplace(id);
  if (!is_new) return place->second.as<float>();
  const std::size_t bytes = sizeof(float) * static_cast<std::size_t>(num_layers_) *
                            static_cast<std::size_t>(sink_tokens_) * static_cast<std::size_t>(2 * kv_width_);
  if (spare_.empty()) {
    place->second = DeviceMemory(device_, bytes);
  } else {
    place->second = std::move(spare_.back());
    spare_.pop_back();
  }
  device_->fill(place->second.as(), 0, bytes);
  return place->second.as<float>();
}

void GpuSinkKeys::add_arrival(const SequenceSlice& slice, int first_token) {
  float* const rows = rows_of(slice.id);
  const int first = slice.first_position(), count = std::min(slice.num_new_tokens, sink_tokens_ - first);
  for (int sink = 0; sink < count; ++sink) {
    arriving_.push_back(first_token + sink);
    arrivals_.push_back(rows + static_cast<std::ptrdiff_t>(first + sink) * 2 * kv_width_);
  }
}

void GpuSinkKeys::add_move(const SequenceSlice& slice, const std::vector<BlockId>& blocks, int block_size) {
  if (!makes_up_ && !kept_.contains(slice.id))
    throw std::invalid_argument("batch: the attention sinks of sequence " + std::to_string(slice.id) +
                                " have not been computed here");
  const float* const rows = rows_of(slice.id);
  for (int sink = 0; sink < sink_tokens_; ++sink) {
    moving_.push_back(rows + std::ptrdiff_t{sink} * 2 * kv_width_);
    positions_.push_back(slice.num_evicted_tokens + sink);
    const std::int64_t block = blocks[static_cast<std::size_t>(sink / block_size)];
    slots_.push_back(block * block_size + sink % block_size);
  }
}

void GpuSinkKeys::before_rotation(const GpuNewKv& kv, int layer) {
  if (arriving_.empty()) return;
  device_->keep_sink_keys({.kv = kv.kv,
                           .stride = kv.stride,
                           .tokens = device_arriving_.as<std::int32_t>(),
                           .kept = device_arrivals_.as<float*>(),
                           .first_kept = std::int64_t{layer} * sink_tokens_ * 2 * kv_width_,
                           .num_tokens = static_cast<int>(arriving_.size()),
                           .width = 2 * kv_width_});
}

void GpuSinkKeys::execute(const Op& op, const GpuKvLayer& layer) {
  if (op.kind != OpKind::shift_sink_keys || op.m != static_cast<std::int64_t>(moving_.size()) || op.n != 2 * kv_width_)
    throw std::invalid_argument("plan: " + std::string(op.name) + " has another shape");
  const kernels::KvCacheView& cache = layer.of(Phase::decode).cache;
  device_->shift_sink_keys({.kept = device_moving_.as<const float*>(),
                            .first_kept = std::int64_t{layer.layer} * sink_tokens_ * 2 * kv_width_,
                            .positions = device_positions_.as<std::int32_t>(),
                            .slots = device_slots_.as<std::int64_t>(),
                            .cos_sin = position_.kind == PositionKind::rope ? layer.cos_sin : nullptr,
                            .cache = cache,
                            .num_tokens = static_cast<int>(moving_.size()),
                            .rotary_dim = position_.rotary_dim == 0 ? cache.head_dim : position_.rotary_dim,
                            .neighbours = position_.pairs == RopePairs::neighbours});
}

void GpuSinkKeys::forget(SequenceId id) {
  const auto found = kept_.find(id);
  if (found == kept_.end()) return;
  spare_.push_back(std::move(found->second));
  kept_.erase(found);
}

}  // namespace dculab::engine
