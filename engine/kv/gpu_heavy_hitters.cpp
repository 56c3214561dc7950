#include "engine/kv/gpu_heavy_hitters.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "lower/kv/kv_memory.hpp"

namespace dculab::engine {

GpuHeavyHitters::GpuHeavyHitters(std::shared_ptr<kernels::gpu::Device> device, const ModelShape& shape,
                                 const GpuStepLimits& limits)
    : device_(std::move(device)),
      limits_(limits),
      num_layers_(shape.num_layers()),
      num_kv_heads_(shape.heads().num_key_value_heads),
      longest_(shape.max_position_embeddings),
      device_states_(device_, sizeof(State) * static_cast<std::size_t>(limits.max_num_seqs)),
      device_next_positions_(device_, sizeof(std::int32_t) * static_cast<std::size_t>(limits.max_num_seqs)),
      device_head_slots_(device_, sizeof(std::int64_t*) * static_cast<std::size_t>(limits.max_num_batched_tokens)) {}

void GpuHeavyHitters::begin(const StepPlan& plan, int block_size) {
  const Batch& batch = plan.batch;
  const KvRetention& retention = plan.kv_retention;
  window_ = retention.window_tokens;
  make_room(lower::heavy_hitter_places(retention, block_size, longest_));
  states_.clear();
  next_positions_.clear();
  head_slots_.clear();
  begun_.clear();
  takes_places_ = false;
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const SequenceSlice& slice = batch.sequences[i];
    const bool one_takes_one = slice.num_newly_evicted_tokens == 1 && slice.num_new_tokens == 1;
    if (slice.context_tokens() > capacity_ || (slice.num_evicted_tokens > 0 && !one_takes_one))
      throw std::invalid_argument("batch: a full sequence takes one token in the place of another");
    const State state = find(slice, batch.block_tables[i], block_size).state;
    states_.push_back(state);
    next_positions_.push_back(slice.first_position() + slice.num_new_tokens);
    takes_places_ |= slice.num_newly_evicted_tokens > 0;
    head_slots_.insert(head_slots_.end(), static_cast<std::size_t>(slice.num_new_tokens),
                       slice.num_newly_evicted_tokens > 0 ? state.next_slots : nullptr);
  }
  upload_values(*device_, device_states_, states_);
  upload_values(*device_, device_next_positions_, next_positions_);
  if (takes_places_) upload_values(*device_, device_head_slots_, head_slots_);
}

// What was kept in another number of places is of no use.
void GpuHeavyHitters::make_room(int capacity) {
  if (capacity == capacity_) return;
  capacity_ = capacity;
  sequences_.clear();
  spare_.clear();
}

GpuHeavyHitters::Sequence GpuHeavyHitters::make_sequence() {
  if (!spare_.empty()) {
    Sequence sequence = std::move(spare_.back());
    spare_.pop_back();
    return sequence;
  }
  const std::size_t places = num_rows() * static_cast<std::size_t>(capacity_);
  Sequence sequence{DeviceMemory(device_, num_rows() * sizeof(std::int64_t) + places * 2 * sizeof(float)), {}};
  sequence.state.next_slots = sequence.memory.as<std::int64_t>();
  sequence.state.positions = reinterpret_cast<std::int32_t*>(sequence.state.next_slots + num_rows());
  sequence.state.sums = reinterpret_cast<float*>(sequence.state.positions + places);
  return sequence;
}

GpuHeavyHitters::Sequence& GpuHeavyHitters::find(const SequenceSlice& slice, const std::vector<BlockId>& blocks,
                                                 int block_size) {
  const auto found = sequences_.find(slice.id);
  const bool unseen = found == sequences_.end();
  if (unseen && slice.first_position() > 0 && !makes_up_)
    throw std::invalid_argument("batch: the beginning of sequence " + std::to_string(slice.id) +
                                " has not been computed here");
  if (!unseen && slice.first_position() > 0) return found->second;
  Sequence& sequence = unseen ? sequences_.emplace(slice.id, make_sequence()).first->second : found->second;
  start_at(sequence, slice, blocks, block_size);
  return sequence;
}

// Places are taken in order, so the tokens stand where their places do. Of a sequence that is made up all are old, and
// the first goes. Slots and positions of all layers lie side by side.
void GpuHeavyHitters::start_at(const Sequence& sequence, const SequenceSlice& slice, const std::vector<BlockId>& blocks,
                               int block_size) {
  const auto capacity = static_cast<std::size_t>(capacity_);
  std::vector<std::int32_t> positions(capacity, -window_);
  if (slice.first_position() == 0) std::iota(positions.begin(), positions.end(), 0);
  if (slice.num_newly_evicted_tokens > 0) positions.front() = slice.first_position();
  const std::vector<std::int64_t> slots(num_rows(), std::int64_t{blocks.front()} * block_size);
  std::vector<std::byte>& begun = begun_.emplace_back();
  begun.reserve(num_rows() * (sizeof(std::int64_t) + std::span(positions).size_bytes()));
  const auto add = [&](const auto& values) {
    const auto bytes = std::as_bytes(std::span(values));
    begun.insert(begun.end(), bytes.begin(), bytes.end());
  };
  add(slots);
  for (std::size_t row = 0; row < num_rows(); ++row) add(positions);
  device_->fill(sequence.state.sums, 0, num_rows() * capacity * sizeof(float));
  device_->upload(sequence.state.next_slots, begun.data(), begun.size());
}

void GpuHeavyHitters::before_cache(kernels::gpu::ReshapeAndCache& args, int layer) {
  if (takes_places_)
    args.head_slots = {device_head_slots_.as<const std::int64_t*>(), std::int64_t{layer} * num_kv_heads_};
}

void GpuHeavyHitters::execute(const Op& op, const GpuKvLayer& layer) {
  int first = 0;
  for (const Phase phase : {Phase::prefill, Phase::decode}) {
    const GpuAttention& attention = layer.of(phase);
    if (attention.inputs.num_seqs > 0)
      device_->attention_scores({.q = attention.queries(),
                                 .q_stride = attention.layer.projected_width(),
                                 .cache = attention.cache,
                                 .block_tables = attention.on_device.block_tables.as<std::int32_t>(),
                                 .max_blocks_per_seq = attention.inputs.max_blocks_per_seq,
                                 .query_start_loc = attention.on_device.query_start_loc.as<std::int32_t>(),
                                 .context_lens = attention.on_device.context_lens.as<std::int32_t>(),
                                 .max_context_len = longest_context(attention.inputs),
                                 .num_seqs = attention.inputs.num_seqs,
                                 .num_heads = attention.layer.heads.num_attention_heads,
                                 .scale = static_cast<float>(attention.layer.score_scale()),
                                 .states = device_states_.as<State>() + first,
                                 .next_positions = device_next_positions_.as<std::int32_t>() + first,
                                 .layer = layer.layer,
                                 .capacity = capacity_,
                                 .window = window_});
    first += attention.inputs.num_seqs;
  }
  if (op.kind != OpKind::attention_scores || op.attention.num_sequences != first)
    throw std::invalid_argument("plan: " + std::string(op.name) + " has another shape");
}

void GpuHeavyHitters::forget(SequenceId id) {
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return;
  spare_.push_back(std::move(found->second));
  sequences_.erase(found);
}

std::vector<std::int32_t> GpuHeavyHitters::positions(SequenceId id, int layer, int kv_head) const {
  const auto capacity = static_cast<std::size_t>(capacity_);
  const auto row =
      static_cast<std::size_t>(layer) * static_cast<std::size_t>(num_kv_heads_) + static_cast<std::size_t>(kv_head);
  std::vector<std::int32_t> positions(capacity);
  device_->download(positions.data(), sequences_.at(id).state.positions + row * capacity,
                    std::span(positions).size_bytes());
  return positions;
}

}  // namespace dculab::engine
