// Drafts with DeepSeek's layer of multi-token prediction. It follows the model: after each step it computes what the
// model has computed, one token ahead, on the scheduler's own block tables with K and V of its own behind them; then it
// goes on from its own hidden states for the tokens behind the first.
//
// K and V that it has of tokens it only guessed are overwritten once these are known. The last slot of a block depends
// on the token behind the block: where prefix caching finds the block before another token, guesses may be worse than
// they might be, never the text.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "core/drafter.hpp"
#include "core/engine_options.hpp"
#include "core/step_plan.hpp"
#include "engine/executors/model_executor.hpp"
#include "engine/executors/mtp_layer.hpp"
#include "engine/speculation/guesses.hpp"

namespace dculab::engine {

class MtpDrafter final : public Drafter {
 public:
  // `model` outlives it, and leaves all hidden states from now on. `options` are the model's, with a chain for a shape.
  // Precondition: the layer has as many KV blocks as the model, of the same size, on device and host. Throws InputError
  // where the shape is a tree, and as ModelExecutor::keep_all_hidden.
  MtpDrafter(ModelExecutor& model, std::unique_ptr<MtpLayer> layer, const EngineOptions& options);

  [[nodiscard]] Proposal propose(const Batch& batch, std::span<const ScheduledSequence> sequences) override;
  void judged(std::span<const JudgedSequence> sequences) override;
  void copy_blocks(std::span<const BlockCopy> copies) override { layer_->executor().copy_blocks(copies); }
  void swap_blocks(std::span<const BlockCopy> out, std::span<const BlockCopy> in) override {
    layer_->executor().swap_blocks(out, in);
  }
  void forget(SequenceId id) override;

 private:
  // After a step: what the layer says of the token behind the sequence's last.
  struct Known {
    int num_tokens = 0;  // of the sequence
    std::vector<float> logits, hidden;
  };
  // A sequence of the step that runs.
  struct Member {
    ScheduledSequence scheduled;
    SequenceSlice slice;  // without its draft
  };
  // A draft that grows by a token a pass.
  struct Growth {
    const ScheduledSequence* scheduled = nullptr;
    DraftTree* tree = nullptr;
    int depth = 0;  // that it may reach
    std::vector<float> logits, hidden;
  };

  void start(const ScheduledSequence& scheduled, DraftTree& tree);
  void guess(Growth& growth);
  [[nodiscard]] bool grow();
  void begin_batch();
  void add_to_batch(const Sequence& sequence, const SequenceSlice& slice, std::span<const TokenId> tokens,
                    std::span<const float> hidden);
  void run();
  [[nodiscard]] int follow(const Member& member, const JudgedSequence* judged, int first_token);

  ModelExecutor& model_;
  std::unique_ptr<MtpLayer> layer_;
  EngineOptions options_;
  StepPlanner planner_;
  StepPlan plan_;
  std::vector<float> hidden_;  // of the batch that is being made, [tokens, hidden_size]
  std::vector<Member> members_;
  std::vector<Growth> growing_;
  std::unordered_map<SequenceId, Known> known_;
  Guesses guesses_;
  Seconds following_{};  // since the last proposal
};

}  // namespace dculab::engine
