// The numbers that a kivi4 or kivi2 cache stands for.
#pragma once

#include "kernels/kv/kivi.hpp"
#include "kernels/reference/cached_value.hpp"

namespace dculab::kernels::reference {

// Which sequence of a call, and where it is in it.
struct KiviSequence {
  int index = 0;
  int computed = 0;         // tokens before the new ones
  int first_new_token = 0;  // of new_kv
};

// Element `d` of a token that is not (or not yet) seen quantized: from the residual, or among the new ones.
[[nodiscard]] float load_full(const KvCacheView& cache, const NewKv& new_kv, const KiviSequence& sequence,
                              KvTensor tensor, int kv_head, int token, int d);

// Element `d` of a token whose group is quantized.
[[nodiscard]] double load_quantized(const KvCacheView& cache, const std::int32_t* block_table, KvTensor tensor,
                                    int kv_head, int token, int d);

}  // namespace dculab::kernels::reference
