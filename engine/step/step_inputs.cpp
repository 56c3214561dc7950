#include "engine/step/step_inputs.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

#include "core/error.hpp"

namespace dculab::engine {
namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(std::string("batch: ") + what);
}

constexpr int kMostTreeTokens = 64;  // a bit each

// The rows of Batch::tree_masks of a slice with a tree, which begin at `first_mask`.
std::span<const std::uint64_t> masks_of(const Batch& batch, const SequenceSlice& sequence, std::size_t first_mask) {
  const auto count = static_cast<std::size_t>(sequence.num_new_tokens);
  require(first_mask + count <= batch.tree_masks.size(), "tree masks do not match the slices");
  return std::span(batch.tree_masks).subspan(first_mask, count);
}

// Tokens of a slice up to its last position; those that were evicted are not among them.
int length_of(const SequenceSlice& sequence, std::span<const std::uint64_t> masks) {
  if (sequence.num_tree_tokens == 0) return sequence.context_tokens();
  int deepest = 0;
  for (const std::uint64_t mask : masks) deepest = std::max(deepest, std::popcount(mask));
  return sequence.context_tokens() - sequence.num_tree_tokens + deepest;
}

void check_tree(const SequenceSlice& sequence, std::span<const std::uint64_t> masks) {
  require(sequence.phase == Phase::decode, "a prefill has no tree");
  require(sequence.num_tree_tokens >= sequence.num_new_tokens && sequence.num_tree_tokens <= kMostTreeTokens &&
              sequence.num_tree_tokens <= sequence.context_tokens(),
          "a tree of an impossible size");
  const int before = sequence.num_tree_tokens - sequence.num_new_tokens;
  for (std::size_t token = 0; token < masks.size(); ++token)
    require(masks[token] >> (static_cast<std::size_t>(before) + token) == 1,
            "a token of a tree sees itself and none behind it");
}

// Returns how many masks the slice has.
std::size_t check_decode(const Batch& batch, const SequenceSlice& sequence, std::size_t first_mask,
                         const InputLimits& limits) {
  require(sequence.num_draft_tokens >= 0 && sequence.num_draft_tokens <= sequence.num_new_tokens &&
              (sequence.phase == Phase::decode || sequence.num_draft_tokens == 0),
          "a slice with impossible drafts");
  require(sequence.num_tree_tokens >= 0, "a slice with an impossible tree");
  const bool has_tree = sequence.num_tree_tokens > 0;
  const auto masks = has_tree ? masks_of(batch, sequence, first_mask) : std::span<const std::uint64_t>();
  if (has_tree) check_tree(sequence, masks);
  require(length_of(sequence, masks) <= limits.max_position_embeddings, "longer than max_position_embeddings");
  return masks.size();
}

void check(const Batch& batch, const InputLimits& limits) {
  require(!batch.sequences.empty(), "no sequences");
  require(batch.block_tables.size() == batch.sequences.size(), "one block table per sequence is needed to execute it");
  require(batch.token_ids.size() == static_cast<std::size_t>(batch.num_tokens()), "token ids do not match the slices");
  for (const TokenId token : batch.token_ids)
    if (token < 0 || token >= limits.vocab_size)
      throw InputError("token id " + std::to_string(token) + " is outside the model's vocabulary of " +
                       std::to_string(limits.vocab_size) + "; does the tokenizer belong to this model?");
  Phase phase = Phase::prefill;
  std::size_t num_masks = 0;
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const SequenceSlice& sequence = batch.sequences[i];
    const std::vector<BlockId>& blocks = batch.block_tables[i];
    require(sequence.num_new_tokens >= 1 && sequence.num_computed_tokens >= 0, "a slice without new tokens");
    require(sequence.num_logits >= 0 && sequence.num_logits <= sequence.num_new_tokens, "more logits than new tokens");
    require(phase == Phase::prefill || sequence.phase == Phase::decode, "prefills must come before decodes");
    num_masks += check_decode(batch, sequence, num_masks, limits);
    require(sequence.num_evicted_tokens >= 0 && sequence.num_unwritten_tokens >= 0 &&
                sequence.num_unwritten_tokens <= sequence.num_new_tokens,
            "a slice with impossible counts");
    phase = sequence.phase;
    const auto capacity = static_cast<std::int64_t>(blocks.size()) * limits.block_size;
    require(sequence.context_tokens() <= capacity, "a block table is shorter than its context");
    require(std::all_of(blocks.begin(), blocks.end(), [&](BlockId id) { return id >= 0 && id < limits.num_blocks; }),
            "a block lies outside the KV cache");
  }
  require(num_masks == batch.tree_masks.size(), "tree masks do not match the slices");
}

}  // namespace

void StepInputs::fill(const Batch& batch, const InputLimits& limits) {
  check(batch, limits);
  token_ids_.assign(batch.token_ids.begin(), batch.token_ids.end());
  positions_.clear();
  slot_mapping_.clear();
  logits_tokens_.clear();
  num_positions_ = 0;
  std::size_t mask = 0;
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const SequenceSlice& sequence = batch.sequences[i];
    add_tokens(sequence, batch.block_tables[i], limits.block_size);
    if (sequence.num_tree_tokens == 0) continue;
    const auto masks = masks_of(batch, sequence, mask);
    set_tree_positions(sequence, masks);
    mask += masks.size();
  }
  for (const std::int32_t position : positions_) num_positions_ = std::max(num_positions_, position + 1);
  fill_attention(prefill_, batch, Phase::prefill);
  fill_attention(decode_, batch, Phase::decode);
  decode_.first_token = prefill_.query_start_loc.back();
}

void StepInputs::add_tokens(const SequenceSlice& sequence, std::span<const BlockId> blocks, int block_size) {
  for (int place = sequence.num_computed_tokens; place < sequence.context_tokens(); ++place) {
    const auto block = static_cast<std::int64_t>(blocks[static_cast<std::size_t>(place / block_size)]);
    const std::int64_t slot = block * block_size + place % block_size;
    const bool written = place - sequence.num_computed_tokens >= sequence.num_unwritten_tokens;
    positions_.push_back(sequence.num_evicted_tokens + place);
    slot_mapping_.push_back(written ? slot : -1);
  }
  const auto end = static_cast<std::int32_t>(positions_.size());
  for (std::int32_t token = end - sequence.num_logits; token < end; ++token) logits_tokens_.push_back(token);
}

void StepInputs::set_tree_positions(const SequenceSlice& sequence, std::span<const std::uint64_t> masks) {
  const int before = sequence.num_evicted_tokens + sequence.context_tokens() - sequence.num_tree_tokens;
  auto position = positions_.end() - sequence.num_new_tokens;
  for (const std::uint64_t mask : masks) *position++ = before + std::popcount(mask) - 1;
}

void StepInputs::fill_attention(AttentionInputs& inputs, const Batch& batch, Phase phase) {
  inputs.num_seqs = 0;
  inputs.max_blocks_per_seq = 0;
  inputs.query_start_loc.assign(1, 0);
  inputs.context_lens.clear();
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const SequenceSlice& sequence = batch.sequences[i];
    if (sequence.phase != phase) continue;
    ++inputs.num_seqs;
    inputs.max_blocks_per_seq = std::max(inputs.max_blocks_per_seq, static_cast<int>(batch.block_tables[i].size()));
    inputs.query_start_loc.push_back(inputs.query_start_loc.back() + sequence.num_new_tokens);
    inputs.context_lens.push_back(sequence.context_tokens());
  }
  const auto columns = static_cast<std::size_t>(inputs.max_blocks_per_seq);
  inputs.block_tables.assign(static_cast<std::size_t>(inputs.num_seqs) * columns, 0);
  auto row = inputs.block_tables.begin();
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    if (batch.sequences[i].phase != phase) continue;
    std::copy(batch.block_tables[i].begin(), batch.block_tables[i].end(), row);
    row += static_cast<std::ptrdiff_t>(columns);
  }
  inputs.tree_masks.clear();
  inputs.tree_sizes.clear();
  if (phase == Phase::decode && !batch.tree_masks.empty()) fill_trees(inputs, batch);
}

void StepInputs::fill_trees(AttentionInputs& inputs, const Batch& batch) {
  auto mask = batch.tree_masks.begin();
  for (const SequenceSlice& sequence : batch.sequences) {
    if (sequence.phase != Phase::decode) continue;
    inputs.tree_sizes.push_back(sequence.num_tree_tokens);
    for (int token = 0; token < sequence.num_new_tokens; ++token)
      inputs.tree_masks.push_back(sequence.num_tree_tokens > 0 ? *mask++ : 0);
  }
}

}  // namespace dculab::engine
