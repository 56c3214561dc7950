// Where one element of a token's K or V lies in the paged cache, and the number it stands for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ops.hpp"

namespace dculab::kernels::reference {

enum class KvTensor : std::uint8_t { k, v };

// The slot of the `token`-th token of a sequence.
[[nodiscard]] std::int64_t slot_of(const KvCacheView& cache, const std::int32_t* block_table, int token);

// Index of element `d` of one KV head of the token at `slot`.
[[nodiscard]] std::size_t cache_index(const KvCacheView& cache, KvTensor tensor, std::int64_t slot, int kv_head, int d);

// Not kivi4 and kivi2. FP8 and int8: a stored value stands for value * scale. The quotient that is stored rounds to F32
// first, as a division in F32 does, so that stored bytes can be compared exactly.
[[nodiscard]] double load_cached(const KvCacheView& cache, KvTensor tensor, std::size_t index);

// All of one head at a slot: its int8 scale is max |value| / 127.
void store_cached(const KvCacheView& cache, KvTensor tensor, std::int64_t slot, int kv_head, const float* values);

}  // namespace dculab::kernels::reference
