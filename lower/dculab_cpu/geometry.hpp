// How our CPU kernels cut attention into tasks: what the kernels and the prices go by. Products are cut by columns, and
// each weight is asked for once.
#pragma once

#include "core/attention_work.hpp"

namespace dculab::lower::dculab_cpu {

inline constexpr int kPartitionTokens = 512;  // of the context; a multiple of the KV tile
inline constexpr int kQueryRows = 128;        // (token, head of the group) rows that share a pass over the KV tiles
static_assert(kPartitionTokens % kKvTileTokens == 0);

}  // namespace dculab::lower::dculab_cpu
