// Drafts with Medusa's heads: each reads the last hidden state of the model and guesses one of the tokens to come; a
// tree takes their guesses place by place (Cai et al. 2024, arXiv:2401.10774).
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "core/drafter.hpp"
#include "engine/checkpoint/medusa_checkpoint.hpp"
#include "engine/executors/model_executor.hpp"

namespace dculab::engine {

// The tree that is drafted: `asked`, or where that has no nodes the heads' own. Throws InputError for a tree with more
// levels than there are heads, or more guesses for a place than a head has.
[[nodiscard]] DraftShape medusa_shape(const MedusaWeights& weights, const DraftShape& asked);

// The node at depth d with rank r gets the r-th guess of head d, whatever stands above it: the Cartesian product of
// the heads' guesses, as far as the shape takes it. Guesses are not drawn: the trees have no probabilities. A sequence
// has no draft before the model has read its last tokens once: a sample that has just parted from another.
class MedusaDrafter final : public Drafter {
 public:
  // `model` outlives it; `shape` is medusa_shape(). Throws InputError as ModelExecutor::make_draft_heads, and for more
  // guesses than the device's kernels give.
  MedusaDrafter(ModelExecutor& model, const MedusaWeights& weights, DraftShape shape);

  [[nodiscard]] Proposal propose(const Batch& batch, std::span<const ScheduledSequence> sequences) override;
  void judged(std::span<const JudgedSequence> sequences) override;
  void forget(SequenceId id) override { known_.erase(id); }

 private:
  // What the model's head read when it chose the sequence's last token. It depends on the tokens alone, so it stays
  // true when the sequence is preempted.
  struct Known {
    int num_tokens = 0;  // of the sequence
    std::vector<float> hidden;
  };

  [[nodiscard]] const Known* known(const ScheduledSequence& scheduled) const;
  [[nodiscard]] DraftTree tree(std::span<const TokenId> guesses) const;

  ModelExecutor& model_;
  std::unique_ptr<DraftHeads> heads_;
  DraftShape shape_;
  std::vector<int> depths_;  // of the shape's nodes
  std::unordered_map<SequenceId, Known> known_;
  std::vector<float> hidden_;  // of the sequences of a step, [sequences, hidden_size]
};

}  // namespace dculab::engine
