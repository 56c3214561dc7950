#include "engine/kv/heavy_hitters.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "kernels/cpu/kv/kv_kernels.hpp"
#include "lower/kv/kv_memory.hpp"

namespace dculab::engine {

void HeavyHitters::begin(const StepPlan& plan, int block_size) {
  const Batch& batch = plan.batch;
  const KvRetention& retention = plan.kv_retention;
  batch_ = &batch;
  block_size_ = block_size;
  window_ = retention.window_tokens;
  capacity_ = lower::heavy_hitter_places(retention, block_size, longest_);
  in_batch_.clear();
  for (const SequenceSlice& slice : batch.sequences) {
    const bool one_takes_one = slice.num_newly_evicted_tokens == 1 && slice.num_new_tokens == 1;
    if (slice.context_tokens() > capacity_ || (slice.num_evicted_tokens > 0 && !one_takes_one))
      throw std::invalid_argument("batch: a full sequence takes one token in the place of another");
    in_batch_.push_back(&find(slice));
  }
  slots_.resize(static_cast<std::size_t>(batch.num_tokens()) * static_cast<std::size_t>(num_kv_heads_));
}

HeavyHitters::Sequence& HeavyHitters::find(const SequenceSlice& slice) {
  const std::size_t size = row(num_layers_, 0);
  Sequence& sequence = sequences_[slice.id];
  const bool unseen = sequence.sums.size() != size;
  if (unseen && slice.first_position() > 0 && !makes_up_)
    throw std::invalid_argument("batch: the beginning of sequence " + std::to_string(slice.id) +
                                " has not been computed here");
  if (unseen || slice.first_position() == 0)
    sequence = {std::vector<float>(size, 0.0F), std::vector<std::int32_t>(size, -window_)};
  return sequence;
}

const std::int64_t* HeavyHitters::place(int layer) {
  std::int64_t* slots = slots_.data();
  for (std::size_t index = 0; index < in_batch_.size(); ++index) {
    place_slice(layer, index, slots);
    slots += std::ptrdiff_t{batch_->sequences[index].num_new_tokens} * num_kv_heads_;
  }
  return slots_.data();
}

void HeavyHitters::place_slice(int layer, std::size_t index, std::int64_t* slots) {
  const SequenceSlice& slice = batch_->sequences[index];
  const std::vector<BlockId>& blocks = batch_->block_tables[index];
  Sequence& sequence = *in_batch_[index];
  for (int token = 0; token < slice.num_new_tokens; ++token) {
    const int position = slice.first_position() + token;
    for (int head = 0; head < num_kv_heads_; ++head) {
      float* sums = sequence.sums.data() + row(layer, head);
      std::int32_t* positions = sequence.positions.data() + row(layer, head);
      const bool full = slice.num_newly_evicted_tokens > 0;
      const int place = full ? choose(sums, positions, position) : slice.num_computed_tokens + token;
      sums[place] = 0;
      positions[place] = position;
      const std::int64_t block = blocks[static_cast<std::size_t>(place / block_size_)];
      *slots++ = block * block_size_ + place % block_size_;
    }
  }
}

// The place that the token at `position` takes.
int HeavyHitters::choose(const float* sums, const std::int32_t* positions, int position) const {
  int chosen = -1;
  for (int place = 0; place < capacity_; ++place) {
    if (positions[place] > position - window_) continue;  // recent: the window ends with the new token
    const bool better = chosen < 0 || sums[place] < sums[chosen] ||
                        (sums[place] == sums[chosen] && positions[place] < positions[chosen]);
    if (better) chosen = place;
  }
  return std::max(chosen, 0);  // none: a step that is repeated, to be measured, has filled the window with its position
}

void HeavyHitters::execute(const Op& op, const CpuKvLayer& layer) {
  int first = 0;
  for (const Phase phase : {Phase::prefill, Phase::decode}) {
    const kernels::PagedAttentionArgs attention = layer.of(phase);
    if (attention.num_seqs > 0)
      kernels::cpu::attention_scores(
          layer.threads, layer.workspace,
          {.attention = attention, .sums = sums(layer.layer, first, attention.num_seqs), .sums_stride = capacity_});
    first += attention.num_seqs;
  }
  if (op.kind != OpKind::attention_scores || op.attention.num_sequences != first)
    throw std::invalid_argument("plan: " + std::string(op.name) + " has another shape");
}

float* const* HeavyHitters::sums(int layer, int first, int count) {
  sums_of_layer_.clear();
  for (int index = first; index < first + count; ++index)
    sums_of_layer_.push_back(in_batch_[static_cast<std::size_t>(index)]->sums.data() + row(layer, 0));
  return sums_of_layer_.data();
}

std::span<const std::int32_t> HeavyHitters::positions(SequenceId id, int layer, int kv_head) const {
  return std::span(sequences_.at(id).positions).subspan(row(layer, kv_head), static_cast<std::size_t>(capacity_));
}

}  // namespace dculab::engine
