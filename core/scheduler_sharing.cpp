// Blocks that a sequence need not fill because others do: those of its whole prompt, or of a prefix that is cached.
#include <algorithm>

#include "core/kv/table.hpp"
#include "core/scheduler.hpp"

namespace dculab {

// Gives a sequence that is admitted the blocks that hold the beginning of its tokens. Returns how many that are.
//
// A preempted sequence with tokens behind its prompt goes on in this very step. Copies are made before a step, so it
// cannot copy the end of a prompt that another sequence writes in the step. It shares whole blocks, which need no copy.
int Scheduler::adopt(Sequence& sequence) {
  const Sequence* owner = duplicate_of(sequence);
  if (owner == nullptr) return pool_.adopt_prefix(sequence.block_table, shareable_tokens(sequence));
  const int prompt = sequence.num_prompt_tokens(), whole = prompt / options_.block_size * options_.block_size;
  sequence.num_duplicate_tokens = sequence.num_generated() == 0 ? prompt : whole;
  pool_.share(sequence.block_table, owner->block_table, sequence.num_duplicate_tokens);
  return sequence.num_duplicate_tokens;
}

// Those whose K and V are the same in every sequence that begins with them. Where a decode has seen a part of the
// cache, K and V of a generated token are not those of the same token in a prompt.
std::span<const TokenId> Scheduler::shareable_tokens(const Sequence& sequence) const {
  const bool is_same_in_prompts = !kv_policy(options_.kv_retention.policy).has_budget;
  const int count = is_same_in_prompts ? sequence.num_tokens() : sequence.num_prompt_tokens();
  return std::span(sequence.tokens).first(static_cast<std::size_t>(count));
}

// A running sequence with the same prompt; null where there is none, where duplicates are not looked for, and where the
// prefix cache has whole blocks of generated tokens too.
const Sequence* Scheduler::duplicate_of(const Sequence& sequence) const {
  const bool is_cached = sequence.num_generated() > 0 && options_.enable_prefix_caching;
  if (!options_.kv_skip.duplicate_prompts || is_cached || sequence.request.num_received_tokens > 0) return nullptr;
  const auto is_same = [&](const auto& other) {
    return other->prompt_hash == sequence.prompt_hash &&
           other->request.prompt_token_ids == sequence.request.prompt_token_ids && has_prompt(*other);
  };
  const auto found = std::ranges::find_if(running_, is_same);
  return found == running_.end() ? nullptr : found->get();
}

// Whether the K and V of its prompt are in the cache once the prefills of this step that come before are done.
bool Scheduler::has_prompt(const Sequence& sequence) const {
  int computed = sequence.num_computed_tokens;
  for (const Entry& entry : prefills_)
    if (entry.sequence == &sequence) computed += entry.num_new_tokens;
  return computed >= sequence.num_prompt_tokens();
}

}  // namespace dculab
