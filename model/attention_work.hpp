// What paged attention reads and computes: summed over the sequences of a step. How kernels share it out:
// lower/attention_walk.hpp.
#pragma once

#include <span>

#include "core/batch.hpp"
#include "core/engine_options.hpp"
#include "core/op.hpp"
#include "model/attention_kind.hpp"

namespace dculab {

// Kernels load K and V in tiles of this many tokens, which begin at multiples of it.
inline constexpr int kKvTileTokens = 64;

// The first KV token that a kernel loads for the query token at `position`: the first that it sees, rounded down to a
// whole tile. sliding_window: 0 = it sees all.
[[nodiscard]] int first_loaded_token(int sliding_window, int position);

// The same for a query of `work`, whose window may be a chunk: the first token of its chunk.
[[nodiscard]] int first_loaded_token(const AttentionWork& work, int position);

// KV tokens that queries at positions [first, last] load, as a range: the cache has them in a row, or the entries of
// compressed attention behind the tokens of its window.
struct LoadedTokens {
  int begin = 0, end = 0;
};
[[nodiscard]] LoadedTokens loaded_tokens(const AttentionWork& work, int first, int last);

// Entries that the queries at positions [0, tokens) see, added up: of each the entries that are complete before it
// ends, `most` of them where that is not 0.
[[nodiscard]] double entry_pairs(int compress_ratio, int most, double tokens);

// A block's number in a block table.
inline constexpr double kBlockIdBytes = 4;

// What attention over the KV cache does for `sequences`.
[[nodiscard]] AttentionWork attention_work(const Gqa& attention, const EngineOptions& options,
                                           std::span<const SequenceSlice> sequences);

// Blocks that hold tokens [begin, end).
[[nodiscard]] int blocks_of(int begin, int end, int block_size);

// Blocks into which the step writes new tokens; those of them that had some before.
struct TouchedBlocks {
  double all = 0, widened = 0;
};
[[nodiscard]] TouchedBlocks touched_blocks(const Batch& batch, int block_size);

// The attention op of one layer for the sequences of `batch` in `phase`; num_sequences == 0 when there are none. With a
// sliding window only the tokens that the kernel loads count: the window, rounded up to whole tiles.
[[nodiscard]] Op plan_attention(const Gqa& attention, const EngineOptions& options, const Batch& batch, Phase phase);

// The same over latents. Expanded, every query head has a KV head of its own, whose keys and values lie in a buffer;
// absorbed, all query heads share one KV head, whose values are the first kv_lora_rank of a key.
[[nodiscard]] Op plan_attention(const Mla& attention, const EngineOptions& options, const Batch& batch, Phase phase,
                                LatentForm form);

// The same over a window of tokens and compressed entries. The entries of a query are those that it has chosen, where
// there is an indexer: kernels gather them for each query anew.
[[nodiscard]] Op plan_attention(const CompressedAttention& attention, const EngineOptions& options, const Batch& batch,
                                Phase phase);

// The indexer's scores: of each query and each entry before it a sum over its heads, of the product of query and key,
// cut off at 0, times the head's weight.
[[nodiscard]] Op plan_index_scores(const CompressedAttention& attention, const EngineOptions& options,
                                   const Batch& batch);

}  // namespace dculab
