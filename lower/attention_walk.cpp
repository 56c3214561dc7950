#include "lower/attention_walk.hpp"

#include <algorithm>
#include <cmath>

#include "model/attention_work.hpp"

namespace dculab::lower {
namespace {

// What one sequence adds, walking its KV once per head group of each KV head.
struct Walk {
  double tokens = 0;      // KV tokens walked, per head group and KV head
  double entries = 0;     // of the block table followed, likewise
  double look_ups = 0;    // of entries at a time, likewise
  double workgroups = 0;  // likewise
  double longest = 0;     // tokens walked by the busiest workgroup
  double tiles = 0;       // of the kernel, likewise
  int partitions = 1;
};

// Pieces of `step` tokens that partitions, which begin at multiples of partition_tokens, have from `begin` on. One that
// starts inside a piece has that piece again.
[[nodiscard]] double pieces_of(int begin, int context, int step, int partition_tokens, int partitions) {
  if (partitions == 1) return blocks_of(begin, context, step);
  const int first = begin / partition_tokens, last_begin = (first + partitions - 1) * partition_tokens;
  return blocks_of(begin, (first + 1) * partition_tokens, step) +
         static_cast<double>(partitions - 2) * ceil_divide(partition_tokens, step) +
         ceil_divide(context - last_begin, step);
}

// A context that lies in one block has nothing to look up tile by tile.
[[nodiscard]] bool steps_by_tiles(const AttentionTile& tile, int context, int block_size) {
  return tile.look_up.tokens > 0 && context > block_size;
}

// One pass, for new tokens at positions [first, last]: partitions share what they see from `begin` on. Blocks that a
// policy has chosen are walked as if they lay in a row.
[[nodiscard]] Walk decode_pass(const AttentionWork& work, const AttentionTile& tile, const KvRetention& retention,
                               int first_token, int last_token) {
  const auto [begin, end] = loaded_tokens(work, first_token, last_token);
  const int context = kv_tokens_loaded(retention, work.block_size, end);
  const int partition_tokens = tile.partition_tokens;
  Walk walk;
  walk.tokens = walk.longest = context - begin;
  const int first = partition_tokens == 0 ? 0 : begin / partition_tokens;
  walk.partitions = partition_tokens == 0 ? 1 : ceil_divide(context, partition_tokens) - first;
  walk.workgroups = walk.partitions;
  walk.look_ups = walk.entries = pieces_of(begin, context, work.block_size, partition_tokens, walk.partitions);
  if (tile.look_up.tokens > 0)
    walk.tiles = pieces_of(begin, context, tile.look_up.tokens, partition_tokens, walk.partitions);
  if (steps_by_tiles(tile, context, work.block_size)) walk.look_ups = walk.tiles;
  if (walk.partitions == 1) return walk;
  const int first_end = (first + 1) * partition_tokens;
  const int last_begin = (first + walk.partitions - 1) * partition_tokens;
  walk.longest = walk.partitions > 2 ? partition_tokens : std::max(first_end - begin, context - last_begin);
  return walk;
}

// Whole KV tiles before the tree for all of its tokens, then for each what is left, with its path.
void add_paths(const SequenceSlice& sequence, Walk& walk) {
  const int before = sequence.context_tokens() - sequence.num_tree_tokens;
  const double left = before % kKvTileTokens + std::min(sequence.num_tree_tokens, kKvTileTokens) / 2.0;
  walk.tokens += left * (sequence.num_new_tokens - 1);
}

// A pass for every query_tokens new tokens: a decode's one, and those that are drafted to follow it.
[[nodiscard]] Walk decode_walk(const AttentionWork& work, const AttentionTile& tile, const KvRetention& retention,
                               const SequenceSlice& sequence) {
  const int computed = sequence.num_computed_tokens, added = sequence.num_new_tokens;
  Walk walk = decode_pass(work, tile, retention, computed, computed + std::min(tile.query_tokens, added) - 1);
  for (int first = tile.query_tokens; first < added; first += tile.query_tokens) {
    const int last = std::min(first + tile.query_tokens, added) - 1;
    const Walk pass = decode_pass(work, tile, retention, computed + first, computed + last);
    walk.tokens += pass.tokens;
    walk.entries += pass.entries;
    walk.look_ups += pass.look_ups;
    walk.tiles += pass.tiles;
    walk.workgroups += pass.workgroups;
    walk.longest = std::max(walk.longest, pass.longest);
    walk.partitions = std::max(walk.partitions, pass.partitions);
  }
  if (tile.gathers_paths && sequence.num_tree_tokens > 0) add_paths(sequence, walk);
  return walk;
}

// Queries that have chosen their entries share none: each gathers its own.
[[nodiscard]] Walk gathering_walk(const AttentionWork& work, const SequenceSlice& sequence) {
  const int last = sequence.context_tokens() - 1;
  const auto [begin, end] = loaded_tokens(work, last, last);
  Walk walk;
  walk.tokens = entry_pairs(work.compress_ratio, work.most_entries, sequence.context_tokens()) -
                entry_pairs(work.compress_ratio, work.most_entries, sequence.num_computed_tokens) +
                static_cast<double>(std::min(work.sliding_window, end)) * sequence.num_new_tokens;
  walk.longest = end - begin;
  walk.workgroups = sequence.num_new_tokens;
  walk.entries = walk.tokens;
  walk.look_ups = std::ceil(walk.tokens / kKvTileTokens);  // their numbers lie in a row
  return walk;
}

// Query tiles walk the context from what their first token sees up to their own last token: causal.
[[nodiscard]] Walk prefill_walk(const AttentionWork& work, const SequenceSlice& sequence, const AttentionTile& tile) {
  if (work.most_entries > 0) return gathering_walk(work, sequence);
  Walk walk;
  for (int first = 0; first < sequence.num_new_tokens; first += tile.query_tokens) {
    const int last = std::min(first + tile.query_tokens, sequence.num_new_tokens) - 1;
    const auto [begin, end] =
        loaded_tokens(work, sequence.num_computed_tokens + first, sequence.num_computed_tokens + last);
    const int blocks = blocks_of(begin, end, work.block_size);
    walk.tokens += end - begin;
    walk.entries += blocks;
    const int tiles = tile.look_up.tokens > 0 ? blocks_of(begin, end, tile.look_up.tokens) : 0;
    walk.tiles += tiles;
    walk.look_ups += steps_by_tiles(tile, end, work.block_size) ? tiles : blocks;
    walk.workgroups += 1;
    walk.longest = std::max<double>(walk.longest, end - begin);
  }
  return walk;
}

// The walks of one sequence after another. A long prefill has many tiles, and sequences of a batch are often alike.
class Walks {
 public:
  Walks(const AttentionWork& work, const AttentionTile& tile, const KvRetention& retention)
      : work_(work), tile_(tile), retention_(retention) {}

  const Walk& of(const SequenceSlice& sequence) {
    if (last_.phase != sequence.phase || last_.num_computed_tokens != sequence.num_computed_tokens ||
        last_.num_new_tokens != sequence.num_new_tokens || last_.num_tree_tokens != sequence.num_tree_tokens)
      walk_ = sequence.phase == Phase::decode ? decode_walk(work_, tile_, retention_, sequence)
                                              : prefill_walk(work_, sequence, tile_);
    last_ = sequence;
    return walk_;
  }

 private:
  const AttentionWork& work_;
  const AttentionTile& tile_;
  const KvRetention& retention_;
  SequenceSlice last_{.num_new_tokens = 0};  // none yet: each has a new token
  Walk walk_;
};

[[nodiscard]] bool is_of(const Op& op, const SequenceSlice& sequence) {
  if (op.kind == OpKind::attention_scores) return true;
  return (op.kind == OpKind::attention_decode) == (sequence.phase == Phase::decode);
}

// Tokens of which each partition has a result that is to be combined. Prefills are not split.
[[nodiscard]] double results_of(const SequenceSlice& sequence) {
  return sequence.phase == Phase::decode ? sequence.num_new_tokens : 1;
}

// Whole blocks each. Where a workgroup begins within a sequence, that has one more piece to be combined.
void share_evenly(const AttentionWork& work, double workgroups, double groups, double sequences, AttentionWalk& all) {
  const double results = work.query_tokens / sequences;
  const double blocks = std::ceil(all.tokens / work.block_size), each = std::ceil(blocks / workgroups);
  const double busy = std::ceil(blocks / each);
  all.workgroups = groups * busy;
  all.longest_tokens = std::min(all.tokens, each * work.block_size);
  all.partitions_combined = (busy > sequences ? busy : std::min(2 * busy, sequences)) * results;
}

}  // namespace

int head_groups(const AttentionWork& work, const AttentionTile& tile) {
  return ceil_divide(ceil_divide(work.num_query_heads, work.num_kv_heads), tile.query_heads);
}

AttentionWalk walk_of(const Op& op, const StepPlan& step, const AttentionTile& tile) {
  const AttentionWork& work = op.attention;
  const double groups = static_cast<double>(work.num_kv_heads) * head_groups(work, tile);
  // H2O's pass: one workgroup for each sequence and KV head, which walks for one new token after the other.
  const bool whole = op.kind == OpKind::attention_scores;
  AttentionWalk all;
  double sequences = 0;
  Walks walks(work, tile, step.kv_retention);
  for (const SequenceSlice& sequence : step.batch.sequences) {
    if (!is_of(op, sequence)) continue;
    const Walk& walk = walks.of(sequence);
    all.tokens += walk.tokens;
    all.workgroups += whole ? work.num_kv_heads : groups * walk.workgroups;
    all.table_entries += groups * walk.entries;
    all.tiles += groups * walk.tiles;
    all.waits_for_table += groups * walk.look_ups * tile.look_up.waits;
    all.longest_tokens = std::max(all.longest_tokens, whole ? walk.tokens : walk.longest);
    all.longest_context = std::max<double>(all.longest_context, sequence.context_tokens());
    if (walk.partitions > 1) all.partitions_combined += walk.partitions * results_of(sequence);
    ++sequences;
  }
  if (tile.persistent > 0 && sequences > 0) share_evenly(work, tile.persistent, groups, sequences, all);
  return all;
}

Decodes decodes_of(const Batch& batch) {
  Decodes decodes;
  for (const SequenceSlice& slice : batch.sequences) {
    if (slice.phase != Phase::decode) continue;
    ++decodes.sequences;
    decodes.longest = std::max(decodes.longest, slice.context_tokens());
  }
  return decodes;
}

}  // namespace dculab::lower
