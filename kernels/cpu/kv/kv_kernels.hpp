// What formats and policies of the KV cache do on the CPU besides reading and writing rows. Arguments, shapes and
// formulas: kernels/kv. As all CPU kernels: the same bits for any number of threads and any batch;
// std::invalid_argument for what they do not serve.
#pragma once

#include <cstdint>

#include "kernels/cpu/cpu_kernels.hpp"
#include "kernels/kv/critical_blocks.hpp"
#include "kernels/kv/heavy_hitters.hpp"
#include "kernels/kv/kivi.hpp"

namespace dculab::kernels::cpu {

// ---- kivi4, kivi2 ----

// head_dim must be a multiple of 32.
void quantize_groups(ThreadPool& threads, Workspace& workspace, const KiviArgs& args);
void keep_residual(ThreadPool& threads, const KiviArgs& args);

// ---- kvquant4, kvquant3, kvquant2 ----

// k, v: [width] of one token, k not rotated yet. Value by value, hence without vectors.
void store_kvquant(const KvCacheView& cache, std::int64_t slot, const float* k, const float* v);

// ---- H2O ----

// Reads K of the cache once for each new token and KV head. ALiBi and sliding windows are not supported.
// Preconditions: as paged_attention's; each sequence has sums of its own.
void attention_scores(ThreadPool& threads, Workspace& workspace, const AttentionScoresArgs& args);

// ---- Critical blocks ----

// Preconditions: block_size is a power of two; no block is in the tables of two sequences whose new tokens are in it.
void update_block_bounds(ThreadPool& threads, const UpdateBlockBoundsArgs& args);

// Preconditions: head_dim is a multiple of 8; each sequence has one new token.
void choose_critical_blocks(ThreadPool& threads, Workspace& workspace, const ChooseCriticalBlocksArgs& args);

// Paged attention of one new token per sequence to what choose_critical_blocks has chosen: with all blocks chosen, bit
// for bit what paged_attention gives. Refuses ALiBi, sliding windows, trees, formats that do not lie in rows, and rows
// of q and out that do not lie side by side (of q: chosen.queries serves).
void critical_attention(ThreadPool& threads, Workspace& workspace, const PagedAttentionArgs& args,
                        const ChosenBlocks& chosen);

}  // namespace dculab::kernels::cpu
