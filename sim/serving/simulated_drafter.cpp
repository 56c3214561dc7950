#include "sim/serving/simulated_drafter.hpp"

#include <algorithm>

namespace dculab::sim {

Drafter::Proposal SimulatedDrafter::propose(const Batch& batch, std::span<const ScheduledSequence> sequences) {
  tasks_.clear();
  Proposal proposal;
  for (std::size_t index = 0; index < sequences.size(); ++index) {
    const ScheduledSequence& scheduled = sequences[index];
    tasks_.push_back(task_of(batch.sequences[index], scheduled));
    proposal.trees.push_back(draft_of(shape_, scheduled.max_draft_tokens, scheduled.max_draft_depth));
  }
  const DraftPrice price = work_.price(tasks_);
  proposal.duration = scale_ * price.seconds;
  active_energy_ += scale_ * price.active;
  return proposal;
}

// What decodes without a draft is computed later, when it is drafted for.
DraftTask SimulatedDrafter::task_of(const SequenceSlice& slice, const ScheduledSequence& scheduled) {
  DraftTask task{.missing = slice, .max_tokens = scheduled.max_draft_tokens, .max_depth = scheduled.max_draft_depth};
  if (!work_.has_cache()) return task;
  const auto [place, is_new] = computed_.try_emplace(slice.id, slice.num_computed_tokens);
  int& computed = place->second;
  // Preempted, it is computed once more, but for what prefix caching finds.
  computed = std::min(computed, slice.num_computed_tokens);
  const int context = slice.context_tokens();
  task.missing.num_computed_tokens = computed;
  task.missing.num_new_tokens = context - computed;
  task.missing.num_unwritten_tokens = std::min(slice.num_unwritten_tokens, task.missing.num_new_tokens);
  if (slice.phase == Phase::decode && task.max_tokens == 0)
    task.missing.num_new_tokens = 0;
  else
    computed = context;
  return task;
}

// Of the accepted tokens all are in the cache but one that nothing was guessed to follow.
void SimulatedDrafter::judged(std::span<const JudgedSequence> sequences) {
  for (const JudgedSequence& judged : sequences) {
    const auto found = computed_.find(judged.sequence->request.id);
    const std::vector<int>& path = judged.verdict->path;
    if (found == computed_.end() || path.empty()) continue;
    const bool ends_in_leaf = judged.draft->children(path.back()).empty();
    found->second += static_cast<int>(path.size()) - (ends_in_leaf ? 1 : 0);
  }
}

Verdict SimulatedTokens::judge(const Sequence& sequence, const DraftTree& draft, int /*first_row*/) {
  const std::uint64_t seed =
      sequence.request.sampling.seed ^ (static_cast<std::uint64_t>(sequence.request.id) * 0x9e3779b97f4a7c15U);
  Verdict verdict;
  verdict.path = accepted_path(*acceptance_, draft, seed, sequence.num_tokens());
  verdict.tokens.assign(verdict.path.size() + 1, 0);
  return verdict;
}

}  // namespace dculab::sim
