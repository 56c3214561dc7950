// Critical blocks: all KV stays, and a decode step loads only the blocks whose keys may matter to its query.
//
//   upper bound of block b for query q   sum over channels d of max(q[d] * minimum[b][d], q[d] * maximum[b][d])
//
// is at least q · k for every key k of the block, where minimum and maximum are those of each key channel. Of each
// sequence and KV head the blocks with the largest bounds are loaded, within a budget; the first block and the most
// recent ones always are. Softmax is over the tokens of the chosen blocks.
// Source: Quest, Tang et al., arXiv:2406.10774, sections 3.3 and 3.4; bounds before scale and soft cap, which keep the
// order.
//
// With grouped queries a KV head's blocks are loaded once for all query heads of its group, so they share one choice:
// by the largest of their bounds. It is a bound for each head of the group: a block that is left out has no head whose
// bound is above that of a block that was ranked. Implementations differ: Quest's own repeats keys so that each query
// head chooses for itself (mit-han-lab/Quest, evaluation/quest_attention.py), which loads the union; SGLang averages
// the group's queries first (python/sglang/srt/mem_cache/sparsity/algorithms/quest_algorithm.py), whose bound is none
// of a single head; NSA sums the heads' scores (arXiv:2502.11089, equation 10). Quest's own also leaves the first two
// layers dense; ours choose in all.
//
// A step calls, layer by layer: rope_and_cache, update_block_bounds, choose_critical_blocks, attention over the chosen
// blocks. Prefill updates bounds and attends to all blocks. ALiBi and sliding windows need positions, and chosen
// blocks have none: attention over them refuses both.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/ops.hpp"

namespace dculab::kernels {

// ---- The bounds of keys ----

// Of one layer: [num_blocks, num_kv_heads, 2, head_dim] BF16, minima and then maxima, of the keys as attention reads
// them: rotated, rounded to the format of the cache, times its scale, in F32. Minima are rounded down, maxima up. BF16
// has the exponents of F32, so no key overflows. Preconditions: keys are finite and below 3.38e38.
using BlockBounds = std::uint16_t;

// Bytes of the bounds of one block in one layer: of K and V in F16 that of one token, 1 / block_size of the block.
[[nodiscard]] constexpr std::int64_t block_bounds_bytes(int num_kv_heads, int head_dim) {
  return std::int64_t{num_kv_heads} * 2 * head_dim * static_cast<std::int64_t>(sizeof(BlockBounds));
}

// The BF16 nearest to a finite value on the side away from zero, or towards it.
[[nodiscard]] constexpr std::uint16_t bf16_from_f32_outward(float value) {
  return static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(value) + 0xFFFFU) >> 16);
}
[[nodiscard]] constexpr std::uint16_t bf16_from_f32_inward(float value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
}
// The largest BF16 that is not above a finite value, and the smallest that is not below it.
[[nodiscard]] constexpr std::uint16_t bf16_at_most(float value) {
  return value < 0 ? bf16_from_f32_outward(value) : bf16_from_f32_inward(value);
}
[[nodiscard]] constexpr std::uint16_t bf16_at_least(float value) {
  return value < 0 ? bf16_from_f32_inward(value) : bf16_from_f32_outward(value);
}

// After the new tokens of a step were written: takes them into the bounds of their blocks. A block whose first token is
// among them begins anew; else its bounds widen, and nothing narrows them: no token is taken back. Blocks that are
// copied take their bounds with them.
struct UpdateBlockBoundsArgs {
  KvCacheView cache;  // K is read; in formats that lie in rows
  BlockBounds* bounds = nullptr;
  const std::int32_t* block_tables = nullptr;  // [num_seqs, max_blocks_per_seq]
  int max_blocks_per_seq = 0;
  const std::int32_t* query_start_loc = nullptr;  // [num_seqs + 1], cumulative new tokens
  const std::int32_t* context_lens = nullptr;     // [num_seqs], new tokens included
  int num_seqs = 0;
};

// ---- The choice ----

// Blocks that a sequence of `num_blocks` loads with a budget of that many: never fewer than the first one and the
// recent ones.
[[nodiscard]] constexpr int chosen_blocks(int num_blocks, int budget, int recent_blocks) {
  const int wanted = budget > 1 + recent_blocks ? budget : 1 + recent_blocks;
  return wanted < num_blocks ? wanted : num_blocks;
}

// What choose_critical_blocks writes, and attention over the chosen blocks reads: each sequence and KV head of the
// cache as a sequence of its own, with one KV head, in a cache of num_blocks * num_kv_heads blocks.
struct ChosenBlocks {
  // Entries between the lists; at least chosen_blocks() of each sequence.
  int stride = 0;
  std::int32_t* places = nullptr;        // [num_seqs, num_kv_heads, stride] in the block table, ascending; may be null
  std::int32_t* block_tables = nullptr;  // the same shape: block * num_kv_heads + KV head
  std::int32_t* context_lens = nullptr;  // [num_seqs, num_kv_heads] tokens in the chosen blocks
  std::int32_t* query_start_loc = nullptr;  // [num_seqs * num_kv_heads + 1]: 0, 1, 2, ...; on the GPU not used
  // [num_seqs, num_heads * head_dim] a copy of q in its own format, where its rows lie further apart; null: they do
  // not.
  void* queries = nullptr;
};

// Of sequences with one new token each.
struct ChooseCriticalBlocksArgs {
  const float* q = nullptr;   // [num_seqs, q_stride], first num_heads * head_dim used; rotated
  std::int64_t q_stride = 0;  // floats between sequences
  KvCacheView cache;          // its shape; K and V are not read
  const BlockBounds* bounds = nullptr;
  const std::int32_t* block_tables = nullptr;  // [num_seqs, max_blocks_per_seq]
  int max_blocks_per_seq = 0;
  const std::int32_t* context_lens = nullptr;  // [num_seqs], the new token included
  const std::int32_t* budgets = nullptr;       // [num_seqs] blocks
  int num_seqs = 0, num_heads = 0;
  int recent_blocks = 1;          // the last ones, always chosen: the one being written at least
  float* upper_bounds = nullptr;  // [num_seqs, num_kv_heads, max_blocks_per_seq]: of q · k, the largest of the group
  ChosenBlocks chosen{};  // among blocks with equal bounds the one that comes first in the sequence is chosen first
};

// ---- Attention over the chosen blocks ----

// The arguments that make paged attention walk over the chosen blocks. `attention`: as for all blocks.
[[nodiscard]] inline PagedAttentionArgs over_chosen_blocks(const PagedAttentionArgs& attention,
                                                           const ChosenBlocks& chosen) {
  PagedAttentionArgs args = attention;
  const int kv_heads = attention.cache.num_kv_heads;
  args.num_heads = attention.num_heads / kv_heads, args.num_seqs = attention.num_seqs * kv_heads;
  args.cache.num_kv_heads = 1, args.cache.num_blocks = attention.cache.num_blocks * kv_heads;
  if (chosen.queries != nullptr) args.q = static_cast<const float*>(chosen.queries);
  args.q_stride = std::int64_t{args.num_heads} * args.cache.head_dim, args.out_stride = 0;
  args.block_tables = chosen.block_tables, args.max_blocks_per_seq = chosen.stride;
  args.query_start_loc = chosen.query_start_loc, args.context_lens = chosen.context_lens;
  return args;
}

}  // namespace dculab::kernels
