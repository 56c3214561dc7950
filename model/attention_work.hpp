// What paged attention reads and computes: summed over the sequences of a step. How kernels share it out:
// lower/attention_walk.hpp.
#pragma once

#include "core/batch.hpp"
#include "core/engine_options.hpp"
#include "core/op.hpp"
#include "model/attention_kind.hpp"

namespace dculab {

// Kernels load K and V in tiles that begin at multiples of so many tokens.
inline constexpr int kKvTileTokens = 64;

// The first KV token that a kernel loads for the query token at `position`: the first that it sees, rounded down to a
// whole tile. sliding_window: 0 = it sees all.
[[nodiscard]] int first_loaded_token(int sliding_window, int position);

// The same for a query of `work`, whose window may be a chunk: the first token of its chunk.
[[nodiscard]] int first_loaded_token(const AttentionWork& work, int position);

// Blocks that hold tokens [begin, end).
[[nodiscard]] int blocks_of(int begin, int end, int block_size);

// The attention op of one layer for the sequences of `batch` in `phase`; num_sequences == 0 when there are none. With a
// sliding window only the tokens that the kernel loads count: the window, rounded up to whole tiles.
[[nodiscard]] Op plan_attention(const Gqa& attention, const EngineOptions& options, const Batch& batch, Phase phase);

// The same over latents. Expanded, every query head has a KV head of its own, whose keys and values lie in a buffer;
// absorbed, all query heads share one KV head, whose values are the first kv_lora_rank of a key.
[[nodiscard]] Op plan_attention(const Mla& attention, const EngineOptions& options, const Batch& batch, Phase phase,
                                LatentForm form);

// H2O's pass in one layer over the keys of all sequences: what each cached token gets of the new tokens' attention is
// added to a sum for each KV head. One workgroup for each sequence and KV head.
[[nodiscard]] Op plan_attention_scores(const Gqa& attention, const EngineOptions& options, const Batch& batch);

}  // namespace dculab
