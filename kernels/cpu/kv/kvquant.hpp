// Writes tokens of a kvquant4, kvquant3 or kvquant2 cache. Formulas and shapes: kernels/kv/kvquant.hpp.
#pragma once

#include "kernels/kv/kvquant.hpp"

namespace dculab::kernels::cpu {

// k, v: [width] of one token, k not rotated yet. Value by value, hence without vectors.
void store_kvquant(const KvCacheView& cache, std::int64_t slot, const float* k, const float* v);

}  // namespace dculab::kernels::cpu
