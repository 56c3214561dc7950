// What a kivi4 or kivi2 cache must hold, and the numbers that it stands for.
#pragma once

#include "kernels/kv/kivi.hpp"
#include "kernels/reference/cached_value.hpp"

namespace dculab::kernels::reference {

// Which sequence of a call, and where it is in it.
struct KiviSequence {
  int index = 0;
  int computed = 0;         // tokens before the new ones
  int first_new_token = 0;  // of NewKv
};

// Element `d` of a token that is not (or not yet) seen quantized: from the residual, or among the new ones.
[[nodiscard]] float load_full(const KvCacheView& cache, const KiviSequence& sequence, KvTensor tensor, int kv_head,
                              int token, int d);

// Element `d` of a token whose group is quantized.
[[nodiscard]] double load_quantized(const KvCacheView& cache, const std::int32_t* block_table, KvTensor tensor,
                                    int kv_head, int token, int d);

// Preconditions: head_dim and residual.tokens are multiples of 32; new_kv is finite and has F16 precision.
void quantize_groups(const KiviArgs& args);
void keep_residual(const KiviArgs& args);

}  // namespace dculab::kernels::reference
