#include "engine/executors/step_inputs.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "core/error.hpp"

namespace dculab::engine {
namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(std::string("batch: ") + what);
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
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const SequenceSlice& sequence = batch.sequences[i];
    const std::vector<BlockId>& blocks = batch.block_tables[i];
    require(sequence.num_new_tokens >= 1 && sequence.num_computed_tokens >= 0, "a slice without new tokens");
    require(sequence.num_logits >= 0 && sequence.num_logits <= sequence.num_new_tokens, "more logits than new tokens");
    require(sequence.context_tokens() <= limits.max_position_embeddings, "longer than max_position_embeddings");
    require(phase == Phase::prefill || sequence.phase == Phase::decode, "prefills must come before decodes");
    require(sequence.phase == Phase::prefill || sequence.num_new_tokens == 1, "a decode has one new token");
    require(sequence.num_evicted_tokens >= 0 && sequence.num_unwritten_tokens >= 0 &&
                sequence.num_unwritten_tokens <= sequence.num_new_tokens,
            "a slice with impossible counts");
    phase = sequence.phase;
    const auto capacity = static_cast<std::int64_t>(blocks.size()) * limits.block_size;
    require(sequence.context_tokens() <= capacity, "a block table is shorter than its context");
    require(std::all_of(blocks.begin(), blocks.end(), [&](BlockId id) { return id >= 0 && id < limits.num_blocks; }),
            "a block lies outside the KV cache");
  }
}

}  // namespace

void StepInputs::fill(const Batch& batch, const InputLimits& limits) {
  check(batch, limits);
  token_ids_.assign(batch.token_ids.begin(), batch.token_ids.end());
  positions_.clear();
  slot_mapping_.clear();
  written_slots_.clear();
  logits_tokens_.clear();
  for (const std::int64_t slot : skipped_) skip_set_[static_cast<std::size_t>(slot / 32)] = 0;
  skipped_.clear();
  num_positions_ = 0;
  for (std::size_t i = 0; i < batch.sequences.size(); ++i)
    add_tokens(batch.sequences[i], batch.block_tables[i], limits.block_size);
  mark_skipped(static_cast<std::size_t>(limits.num_blocks) * static_cast<std::size_t>(limits.block_size));
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
    slot_mapping_.push_back(slot);
    written_slots_.push_back(written ? slot : -1);
    if (!written) skipped_.push_back(slot);
  }
  const auto end = static_cast<std::int32_t>(positions_.size());
  for (std::int32_t token = end - sequence.num_logits; token < end; ++token) logits_tokens_.push_back(token);
  num_positions_ = std::max(num_positions_, sequence.num_evicted_tokens + sequence.context_tokens());
}

void StepInputs::mark_skipped(std::size_t num_slots) {
  if (skipped_.empty()) return;
  skip_set_.resize((num_slots + 31) / 32);
  for (const std::int64_t slot : skipped_) skip_set_[static_cast<std::size_t>(slot / 32)] |= 1U << (slot % 32);
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
}

}  // namespace dculab::engine
