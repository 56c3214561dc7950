// Which sequences of a step may be drafted for, how far, and the batch with what was drafted.
#include <algorithm>
#include <utility>

#include "core/scheduler.hpp"

namespace dculab {

// Drafts take the tokens that are left once every decode has its own, and leave one to each running prefill. They
// preempt no sequence.
void Scheduler::schedule_drafts() {
  if (!options_.speculative_config.enabled()) return;
  const auto prefills = std::ranges::count(running_, Phase::prefill, [](const auto& entry) { return entry->phase(); });
  for (Entry& entry : decodes_) schedule_draft(entry, token_budget_ - static_cast<int>(prefills));
}

void Scheduler::schedule_draft(Entry& entry, int most_tokens) {
  Sequence& sequence = *entry.sequence;
  const DraftShape& shape = options_.speculative_config.shape;
  const int longest = std::min(limits_.max_position_embeddings, limits_.draft_context);
  // The token that follows the draft is the model's own.
  const int wanted = sequence.request.max_tokens - sequence.num_generated() - 1;
  const int depth = std::min({draft_depth_, wanted, longest - sequence.num_tokens()});
  if (depth <= 0) return;
  int tokens = std::min(most_tokens, shape.is_chain() ? depth : shape.num_tokens());
  const int computed = sequence.num_tokens_in_cache() + entry.num_new_tokens;
  while (tokens > 0 && !reserve(sequence, computed + tokens)) --tokens;
  if (tokens <= 0) return;
  entry.max_draft_tokens = tokens;
  entry.max_draft_depth = depth;
  token_budget_ -= tokens;
}

std::vector<ScheduledSequence> Scheduler::scheduled_sequences() const {
  std::vector<ScheduledSequence> sequences;
  if (!options_.speculative_config.enabled()) return sequences;
  for (const Entry& entry : step_)
    sequences.push_back({.sequence = entry.sequence,
                         .max_draft_tokens = entry.max_draft_tokens,
                         .max_draft_depth = entry.max_draft_depth});
  return sequences;
}

Batch Scheduler::batch_with_drafts(std::vector<DraftTree> drafts) {
  drafts_ = std::move(drafts);
  for (std::size_t index = 0; index < step_.size(); ++index) fill_draft(step_[index], drafts_[index]);
  sampled_.clear();
  sampled_entries_.clear();
  return make_batch(HeadSet::many);
}

void Scheduler::fill_draft(Entry& entry, DraftTree& draft) {
  if (entry.max_draft_tokens == 0) {
    draft = {};
    return;
  }
  draft.limit_depth(entry.max_draft_depth);
  draft.truncate(entry.max_draft_tokens);
  entry.num_draft_tokens = draft.num_tokens();
  entry.num_tree_tokens = draft.is_chain() ? 0 : 1 + draft.num_tokens();
  entry.num_new_tokens += draft.num_tokens();
  const Sequence& sequence = *entry.sequence;
  pool_.truncate(entry.sequence->block_table, limits_.kv_demand(sequence.num_tokens_in_cache() + entry.num_new_tokens));
}

}  // namespace dculab
