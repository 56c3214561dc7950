// What one engine step works on: which sequences, how many new tokens of each, and where their KV blocks are.
#pragma once

#include <cstdint>
#include <vector>

#include "core/groups_by_load.hpp"
#include "core/kv/retention.hpp"

namespace dculab {

using SequenceId = std::int64_t;
using TokenId = std::int32_t;
using BlockId = std::int32_t;

// One sequence's part of a step. A decode has one new token and those that are drafted to follow it; a prefill or a
// chunk of it any number: `phase` says which kernel serves it. A sequence has at most
// kLongestContext tokens, so an int holds any of its counts; counts of a whole batch take 64 bits.
enum class Phase : std::uint8_t { prefill, decode };

// The largest batches and the longest contexts that scenarios, traces and options may ask for.
inline constexpr int kLargestBatch = 1 << 16;
inline constexpr int kLongestContext = 1 << 24;

struct SequenceSlice {
  SequenceId id = 0;
  Phase phase = Phase::decode;
  int num_computed_tokens = 0;  // already in the KV cache before this step
  int num_new_tokens = 1;       // computed by this step
  int num_logits = 1;           // of the last new tokens; 0 for all but the last chunk of a prompt
  int num_evicted_tokens = 0;  // computed earlier and since dropped from the cache: num_computed_tokens leaves them out
  int num_newly_evicted_tokens = 0;  // of these, dropped to make room for this step
  int num_unwritten_tokens = 0;      // of the new tokens, the first: their K and V are in the cache, in shared blocks
  int num_draft_tokens = 0;          // of a decode's new tokens, the last: guesses to be verified
  // Of the context, the last: a tree, at most 64 tokens, the new ones among them. Batch::tree_masks says which of it
  // each new token sees. 0: new tokens follow one another.
  int num_tree_tokens = 0;

  // Tokens in the KV cache after this step: what the last new token attends to.
  [[nodiscard]] int context_tokens() const { return num_computed_tokens + num_new_tokens; }
  // Where the first new token stands in the text.
  [[nodiscard]] int first_position() const { return num_evicted_tokens + num_computed_tokens; }

  friend bool operator==(const SequenceSlice&, const SequenceSlice&) = default;
};

// Sequences of a step, prefills first, then decodes. The token ids and block tables are there when the step
// is to be executed; a step that is only priced needs the slices alone.
struct Batch {
  std::vector<SequenceSlice> sequences;
  std::vector<TokenId> token_ids;                  // [sum of num_new_tokens]
  std::vector<std::vector<BlockId>> block_tables;  // [num_sequences][ceil(context_tokens / block_size)]
  // Of the new tokens of sequences with num_tree_tokens > 0, in order. Bit i: sees token i of the tree, whose tokens
  // are the last num_tree_tokens of the context; itself and its ancestors. A token's position is the number of tokens
  // that it sees before itself.
  std::vector<std::uint64_t> tree_masks{};
  // When the step begins: of what caches usually keep from one step to the next, the share that others have driven out.
  double cold_share = 0;
  HeadSet head_set = HeadSet::many;  // of all its sequences, where there are two (core/groups_by_load.hpp)
  bool filters_logits = false;       // of some row of logits only the likeliest tokens can be drawn (SamplingParams)

  [[nodiscard]] std::int64_t num_tokens() const {
    std::int64_t total = 0;
    for (const SequenceSlice& sequence : sequences) total += sequence.num_new_tokens;
    return total;
  }
  [[nodiscard]] std::int64_t num_unwritten_tokens() const {
    std::int64_t total = 0;
    for (const SequenceSlice& sequence : sequences) total += sequence.num_unwritten_tokens;
    return total;
  }

  friend bool operator==(const Batch&, const Batch&) = default;
};

// `batch` equal sequences: decodes with `context` tokens in the cache once the step is done, or whole prefills of
// `context` tokens. For pricing: no token ids, no block tables.
[[nodiscard]] Batch uniform_batch(Phase phase, int batch, int context);

// The same for texts of `context` tokens of which a policy keeps what it keeps.
// Precondition: a prefill fits into one step, context <= kv_capacity.
[[nodiscard]] Batch uniform_batch(Phase phase, int batch, int context, const KvRetention& retention, int block_size);

}  // namespace dculab
