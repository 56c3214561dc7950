// A smaller model of the same vocabulary that guesses what the model will say: chains and trees, level by level.
//
// It works on the scheduler's own block tables with KV memory of its own behind them, and computes every token that the
// model does, in the same step: so what is shared, copied, swapped and moved of the one cache is so of the other. Two
// things differ. Of a draft that was accepted to its end the draft model has not computed the last token: it does so
// with the next. And it leaves out what lies beyond its own context.
//
// A block that ends with such a token may be found by prefix caching before, or without, its being computed. Guesses
// are then worse than they might be, never the text.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/drafter.hpp"
#include "core/engine_options.hpp"
#include "engine/executors/model_executor.hpp"
#include "engine/speculation/guesses.hpp"

namespace dculab::engine {

// Those of the draft model beside a model that is served with `options`: a step of the draft model also computes the
// tokens that it has not seen yet, one for each sequence at most.
[[nodiscard]] EngineOptions draft_options(EngineOptions options, const ModelShape& draft);

class DraftModel final : public Drafter {
 public:
  // `options` are draft_options(). Precondition: the executor has as many blocks, of the same size, on device and host
  // as the model's.
  DraftModel(std::unique_ptr<ModelExecutor> executor, EngineOptions options, DraftShape shape);

  [[nodiscard]] Proposal propose(const Batch& batch, std::span<const ScheduledSequence> sequences) override;
  void judged(std::span<const JudgedSequence> sequences) override;
  void copy_blocks(std::span<const BlockCopy> copies) override { executor_->copy_blocks(copies); }
  void swap_blocks(std::span<const BlockCopy> out, std::span<const BlockCopy> in) override;
  void move_slots(std::span<const SlotMove> moves) override { executor_->move_slots(moves); }
  void forget(SequenceId id) override;

  // See ModelExecutor::fill_kv_cache: for measuring behind prompts that were not computed.
  void fill_kv_cache(std::uint64_t seed) { executor_->fill_kv_cache(seed); }

  [[nodiscard]] const ModelExecutor& executor() const { return *executor_; }

 private:
  // A draft that grows by a level a step.
  struct Growth {
    const ScheduledSequence* scheduled = nullptr;
    int first = 0;             // tokens before the draft
    std::vector<int> nodes{};  // [nodes of the shape that may be drafted]: of the tree; kAbsent
    DraftTree* tree = nullptr;
    int level_begin = 0;  // nodes of the tree that were added last, to its end
    int first_row = 0;    // of the logits of the step that runs: that of node `first_node`
    int first_node = 0;   // of the tree, or kRoot
  };
  // How far a sequence has been computed.
  struct Progress {
    int num_computed_tokens = 0;
    int num_computed_nodes = 0;  // of its draft
  };

  void begin_batch();
  void add_to_batch(const ScheduledSequence& scheduled, const SequenceSlice& slice, std::span<const TokenId> tokens);
  void mirror(const Batch& batch, std::span<const ScheduledSequence> sequences, Proposal& proposal);
  void mirror(const SequenceSlice& slice, const ScheduledSequence& scheduled, DraftTree& tree);
  void start_growth(const ScheduledSequence& scheduled, int first, DraftTree& tree);
  void grow();
  void grow(Growth& growth);
  [[nodiscard]] bool add_level(Growth& growth);
  void run();
  [[nodiscard]] int allowed_nodes(const ScheduledSequence& scheduled) const;

  std::unique_ptr<ModelExecutor> executor_;
  EngineOptions options_;
  DraftShape shape_;
  std::vector<int> depths_;                 // of the shape's nodes
  std::vector<std::vector<int>> children_;  // of its root, then of each node
  StepPlanner planner_;
  StepPlan plan_;
  Guesses guesses_;
  std::vector<Growth> growing_;
  std::unordered_map<SequenceId, Progress> progress_;
  int num_rows_ = 0;  // of logits, of the batch that is being made
};

}  // namespace dculab::engine
