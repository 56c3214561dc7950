// Drafts in a simulation: trees of made-up tokens that take as long as a drafter's steps do, and which of them are
// accepted.
//
// A drafter with a KV cache computes the prompts that the model computes, as it computes them, prefixes that are found
// in the cache aside. Before a draft it computes what its cache lacks of the sequence: one token, or two where all of
// the draft before was accepted, whose last token it has guessed and not computed.
#pragma once

#include <unordered_map>
#include <vector>

#include "core/drafter.hpp"
#include "core/serving_loop.hpp"
#include "sim/speculation/draft_work.hpp"

namespace dculab::sim {

class SimulatedDrafter final : public Drafter {
 public:
  // What a round takes is `scale` times its price. `work` and `shape` must outlive it.
  SimulatedDrafter(const DraftWork& work, const DraftShape& shape, double scale)
      : work_(work), shape_(shape), scale_(scale) {}

  [[nodiscard]] Proposal propose(const Batch& batch, std::span<const ScheduledSequence> sequences) override;
  void judged(std::span<const JudgedSequence> sequences) override;
  void forget(SequenceId sequence) override { computed_.erase(sequence); }

  // Of each device so far, beyond power.idle.
  [[nodiscard]] Joules active_energy() const { return active_energy_; }

 private:
  [[nodiscard]] DraftTask task_of(const SequenceSlice& slice, const ScheduledSequence& scheduled);

  const DraftWork& work_;
  const DraftShape& shape_;
  double scale_;
  Joules active_energy_;
  std::vector<DraftTask> tasks_;                  // re-used
  std::unordered_map<SequenceId, int> computed_;  // tokens in the drafter's cache
};

// Every generated token is the same one; drafts are accepted as often as Speculation::acceptance says, by draws that
// depend on the request, its seed and the place alone.
class SimulatedTokens final : public TokenSource {
 public:
  // `acceptance` must outlive it; null: nothing is drafted.
  explicit SimulatedTokens(const Acceptance* acceptance) : acceptance_(acceptance) {}

  TokenId next_token(const Sequence&, int) override { return 0; }
  Verdict judge(const Sequence& sequence, const DraftTree& draft, int first_row) override;

 private:
  const Acceptance* acceptance_;
};

}  // namespace dculab::sim
