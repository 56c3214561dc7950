// Critical blocks on the CPU. Arguments, shapes and formulas: kernels/kv/critical_blocks.hpp. As all CPU kernels: the
// same bits for any number of threads and any batch; std::invalid_argument for what they do not serve.
#pragma once

#include "kernels/cpu/cpu_kernels.hpp"
#include "kernels/kv/critical_blocks.hpp"

namespace dculab::kernels::cpu {

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
