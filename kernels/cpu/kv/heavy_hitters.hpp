// H2O's sums on the CPU. Arguments and shapes: kernels/kv/heavy_hitters.hpp.
#pragma once

#include "kernels/cpu/cpu_kernels.hpp"
#include "kernels/kv/heavy_hitters.hpp"

namespace dculab::kernels::cpu {

// Reads K of the cache once for each new token and KV head. ALiBi and sliding windows are not supported.
// Preconditions: as paged_attention's; each sequence has sums of its own.
void attention_scores(ThreadPool& threads, Workspace& workspace, const AttentionScoresArgs& args);

}  // namespace dculab::kernels::cpu
