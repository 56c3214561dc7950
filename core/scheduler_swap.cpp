// Preemption by swap: a victim's KV blocks in host memory, and back.
#include <algorithm>

#include "core/scheduler.hpp"

namespace dculab {

// Copies what is computed of a sequence to the host and gives its blocks back, however many others hold them too.
// False, and nothing changed, when the host has too few.
bool Scheduler::swap_out(Sequence& sequence) {
  const auto slots = static_cast<int>(in_slots(sequence.head_set, sequence.num_computed_tokens));
  if (!host_pool_.append(sequence.host_table, slots, copies_)) return false;
  const auto blocks = sequence.block_table.blocks(), host_blocks = sequence.host_table.blocks();
  for (std::size_t index = 0; index < host_blocks.size(); ++index)
    swapped_out_.push_back({.source = blocks[index], .destination = host_blocks[index]});
  pool_.release(sequence.block_table);
  sequence.num_shared_tokens = 0;
  ++swaps_.preemptions;
  swaps_.blocks_out += static_cast<std::int64_t>(host_blocks.size());
  return true;
}

// Takes what is still cached of the sequence, blocks for the rest, and copies into them what only the host has. False
// when there is no room; it may then be left with some blocks.
bool Scheduler::swap_in(Sequence& sequence) {
  const int cached = pool_.adopt_prefix(sequence.block_table, shareable_tokens(sequence));
  if (token_budget_ == 0 || !has_room_for(sequence) || !reserve(sequence, sequence.num_tokens())) return false;
  const auto blocks = sequence.block_table.blocks(), host_blocks = sequence.host_table.blocks();
  const auto first = static_cast<std::size_t>(pool_.blocks_for(cached));
  for (std::size_t index = first; index < host_blocks.size(); ++index)
    swapped_in_.push_back({.source = host_blocks[index], .destination = blocks[index]});
  swaps_.blocks_in += static_cast<std::int64_t>(host_blocks.size() - std::min(first, host_blocks.size()));
  host_pool_.release(sequence.host_table);
  sequence.num_shared_tokens = cached;
  sequence.num_computed_tokens = std::max(sequence.num_computed_tokens, std::min(cached, sequence.num_tokens() - 1));
  return true;
}

}  // namespace dculab
