// What a kvquant4, kvquant3 or kvquant2 cache must hold, and the numbers that it stands for.
#pragma once

#include "kernels/kv/kvquant.hpp"
#include "kernels/reference/cached_value.hpp"

namespace dculab::kernels::reference {

// k, v: [width] of one token, k not rotated yet. What is compared and divided rounds to F32, so that stored bytes can
// be compared exactly. Precondition: they are finite.
void store_kvquant(const KvCacheView& cache, std::int64_t slot, const float* k, const float* v);

// Element `d` of one KV head of the `token`-th token of a sequence; of K rotated.
[[nodiscard]] double load_kvquant(const KvCacheView& cache, const std::int32_t* block_table, KvTensor tensor,
                                  int kv_head, int token, int d);

}  // namespace dculab::kernels::reference
