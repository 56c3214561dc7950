#include "engine/kv/residual_rows.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "core/error.hpp"

namespace dculab::engine {

std::span<const std::int32_t> ResidualRows::assign(const Batch& batch) {
  result_.clear();
  for (const SequenceSlice& slice : batch.sequences) result_.push_back(find(slice));
  for (Row& row : rows_) row.is_taken = false;
  for (const std::int32_t row : result_)
    if (row >= 0) rows_[static_cast<std::size_t>(row)].is_taken = true;
  for (std::size_t i = 0; i < result_.size(); ++i) {
    if (result_[i] < 0) result_[i] = take_free_row();
    const SequenceSlice& slice = batch.sequences[i];
    rows_[static_cast<std::size_t>(result_[i])] = {true, slice.id, slice.context_tokens()};
  }
  return result_;
}

// -1 for a sequence that begins.
std::int32_t ResidualRows::find(const SequenceSlice& slice) const {
  if (slice.num_computed_tokens == 0) return -1;
  const auto row = std::ranges::find_if(
      rows_, [&](const Row& candidate) { return candidate.is_taken && candidate.sequence == slice.id; });
  const bool is_known = row != rows_.end();
  const bool goes_on = is_known && row->computed == slice.num_computed_tokens && slice.num_evicted_tokens == 0;
  if (!goes_on && !any_start_)
    throw InputError("sequence " + std::to_string(slice.id) + " goes on from " +
                     std::to_string(slice.num_computed_tokens) +
                     " tokens that a kivi4 or kivi2 KV cache has not seen from it, or no longer holds: it shares no "
                     "blocks and drops none; use another kv_cache_dtype with forks, prefix caching or KV retention");
  return is_known ? static_cast<std::int32_t>(row - rows_.begin()) : -1;
}

std::int32_t ResidualRows::take_free_row() {
  const auto row = std::ranges::find(rows_, false, &Row::is_taken);
  if (row == rows_.end()) throw std::invalid_argument("batch: more sequences than the KV cache was made for");
  row->is_taken = true;
  return static_cast<std::int32_t>(row - rows_.begin());
}

}  // namespace dculab::engine
