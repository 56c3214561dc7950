// A batch as flat arrays, the way kernels read it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/batch.hpp"
#include "kernels/ops.hpp"

namespace dculab::engine {

// What token ids, positions and block ids must stay below.
struct InputLimits {
  int vocab_size = 0;
  int max_position_embeddings = 0;
  int num_blocks = 0;
  int block_size = 0;
};

// The sequences of one phase, for one paged attention call.
struct AttentionInputs {
  int first_token = 0;  // of the step's tokens
  int num_seqs = 0;
  int max_blocks_per_seq = 0;
  std::vector<std::int32_t> query_start_loc;  // [num_seqs + 1], from 0
  std::vector<std::int32_t> context_lens;     // [num_seqs]
  std::vector<std::int32_t> block_tables;     // [num_seqs, max_blocks_per_seq], short rows end in zeros
  // As in kernels::TreeMasks; empty when no sequence of the phase has a tree.
  std::vector<std::uint64_t> tree_masks;  // [tokens of the phase], 0 of sequences without a tree
  std::vector<std::int32_t> tree_sizes;   // [num_seqs]

  // For the sequences from `first_seq` on. Masks are of all tokens of the phase.
  [[nodiscard]] kernels::TreeMasks trees(int first_seq = 0) const {
    return tree_sizes.empty() ? kernels::TreeMasks()
                              : kernels::TreeMasks{tree_masks.data(), tree_sizes.data() + first_seq};
  }
};

// Refilled every step; keeps its storage.
class StepInputs {
 public:
  // Throws InputError when a token id is not in the vocabulary, std::invalid_argument when the batch contradicts itself
  // or the KV cache. Positions of a tree's tokens follow from its masks.
  void fill(const Batch& batch, const InputLimits& limits);

  [[nodiscard]] int num_tokens() const { return static_cast<int>(token_ids_.size()); }
  [[nodiscard]] int num_positions() const { return num_positions_; }  // one past the last, evicted tokens counted
  [[nodiscard]] std::span<const TokenId> token_ids() const { return token_ids_; }
  [[nodiscard]] std::span<const std::int32_t> positions() const { return positions_; }  // [num_tokens]
  // [num_tokens], -1 for tokens that are computed once more and must not be written: Opt-KV's skip set. It goes by
  // tokens, for another sequence of the step may be the one that writes the slot.
  [[nodiscard]] std::span<const std::int64_t> slot_mapping() const { return slot_mapping_; }
  // Tokens whose logits are wanted, ascending.
  [[nodiscard]] std::span<const std::int32_t> logits_tokens() const { return logits_tokens_; }
  [[nodiscard]] const AttentionInputs& attention(Phase phase) const {
    return phase == Phase::prefill ? prefill_ : decode_;
  }

 private:
  void add_tokens(const SequenceSlice& sequence, std::span<const BlockId> blocks, int block_size);
  void set_tree_positions(const SequenceSlice& sequence, std::span<const std::uint64_t> masks);
  static void fill_attention(AttentionInputs& inputs, const Batch& batch, Phase phase);
  static void fill_trees(AttentionInputs& inputs, const Batch& batch);

  std::vector<TokenId> token_ids_;
  std::vector<std::int32_t> positions_;
  std::vector<std::int64_t> slot_mapping_;
  std::vector<std::int32_t> logits_tokens_;
  AttentionInputs prefill_;
  AttentionInputs decode_;
  int num_positions_ = 0;
};

}  // namespace dculab::engine
