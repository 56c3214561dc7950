// Critical blocks: bounds of keys, and the choice of the blocks that a decode loads (kernels/kv/critical_blocks.hpp).
//
//   CPU  a task has 128 blocks of a sequence and KV head. Of each, both bounds of a channel are multiplied, with four
//        heads at a time, of which a smaller group leaves some idle; sums over the lanes of a vector follow. The choice
//        takes each block's bound as a number, one at a time.
//   GPU  a workgroup has 64 blocks of a sequence and KV head, whose queries it loads; a lane has eight channels of a
//        block: it chooses a bound of each for each head. Another kernel finds the last chosen bound digit by digit,
//        four passes over the bounds, and writes the list in a fifth.
//
// Finer blocks have more bounds, that are all read and compared, and lists that are longer.
#pragma once

#include "core/op.hpp"
#include "core/step_plan.hpp"
#include "lower/device.hpp"
#include "lower/launch.hpp"

namespace dculab::lower {

// Whether attention walks over chosen blocks: each KV head its own, that lie anywhere.
[[nodiscard]] bool walks_chosen_blocks(const Op& op, const StepPlan& step);

// `op` is update_block_bounds or choose_critical_blocks. Fill in a launch that asks for each byte once.
void lower_bounds_update(const Op& op, const Device& device, Launch& launch);
void lower_block_choice(const Op& op, const Device& device, Launch& launch);

}  // namespace dculab::lower
