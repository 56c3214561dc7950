// Whoever guesses the next tokens of sequences: a smaller model, heads on the model itself, what the text said before,
// or the simulator.
#pragma once

#include <span>
#include <vector>

#include "core/batch.hpp"
#include "core/draft_tree.hpp"
#include "core/executor.hpp"
#include "core/request.hpp"

namespace dculab {

// One sequence of a step that has been scheduled, before it is drafted for.
struct ScheduledSequence {
  const Sequence* sequence = nullptr;
  int max_draft_tokens = 0;  // slots that are reserved for a draft; 0 for a prefill
  int max_draft_depth = 0;   // more tokens than these would not be needed, or be too many for the draft's context
};

// What has become of one sampled sequence's draft.
struct Verdict {
  std::vector<TokenId> tokens{};  // to be appended: accepted drafts, then one that the model chose itself
  std::vector<int> path{};        // the nodes that were accepted, from the root on: [tokens.size() - 1]

  friend bool operator==(const Verdict&, const Verdict&) = default;
};

// Of sequences without drafts.
[[nodiscard]] inline std::vector<Verdict> verdicts_of(std::span<const TokenId> tokens) {
  std::vector<Verdict> verdicts;
  verdicts.reserve(tokens.size());
  for (const TokenId token : tokens) verdicts.push_back({.tokens = {token}});
  return verdicts;
}

// One sampled sequence after its step.
struct JudgedSequence {
  const Sequence* sequence = nullptr;  // with its new tokens
  const DraftTree* draft = nullptr;    // empty where there was none
  const Verdict* verdict = nullptr;    // as judged; fewer tokens are kept where the sequence has ended
  int first_row = 0;                   // of the step's logits: of the last token, then of the draft's nodes
};

// Works on the very blocks that the scheduler gives the sequences, with memory of its own behind them: block b of a
// drafter holds what it needs of the tokens in block b.
class Drafter {
 public:
  virtual ~Drafter() = default;

  // Guesses for the step that is about to run: `batch` has one new token of each sequence that decodes; trees come back
  // in the order of `sequences`, which is that of the batch, empty where nothing is guessed or max_draft_tokens is 0.
  // `duration` of the result is the time that it took.
  struct Proposal {
    std::vector<DraftTree> trees{};
    Seconds duration{};
  };
  [[nodiscard]] virtual Proposal propose(const Batch& batch, std::span<const ScheduledSequence> sequences) = 0;

  // The step has run, and these are its verdicts; the executor's results are still there.
  virtual void judged(std::span<const JudgedSequence>) {}

  // As the executor's.
  virtual void copy_blocks(std::span<const BlockCopy>) {}
  virtual void swap_blocks(std::span<const BlockCopy> /*out*/, std::span<const BlockCopy> /*in*/) {}
  virtual void move_slots(std::span<const SlotMove>) {}
  virtual void forget(SequenceId) {}
};

}  // namespace dculab
