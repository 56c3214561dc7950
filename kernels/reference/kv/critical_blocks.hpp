// The truth of critical blocks, in double precision. Arguments, shapes and formulas: kernels/kv/critical_blocks.hpp.
#pragma once

#include "kernels/kv/critical_blocks.hpp"

namespace dculab::kernels::reference {

void update_block_bounds(const UpdateBlockBoundsArgs& args);

// Writes `places` too, which may not be null.
void choose_critical_blocks(const ChooseCriticalBlocksArgs& args);

// Attention of one new token per sequence to the tokens of the blocks in `places`, each query head those of its KV
// head. Strides of q and out as they are; ALiBi, windows and trees are not served.
void critical_attention(const PagedAttentionArgs& args, const ChosenBlocks& chosen);

}  // namespace dculab::kernels::reference
