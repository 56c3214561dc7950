// What the GPU's kernels of a kivi4 or kivi2 cache are given. Meaning, layout and shapes: kernels/kv/kivi.hpp; every
// pointer is device memory. Both attention kernels take such a cache too, with KiviOnDevice as its extras; new tokens
// of theirs are rounded to F16 where they are read.
#pragma once

#include <cstdint>

#include "kernels/gpu/args.hpp"
#include "kernels/kv/kivi.hpp"

namespace dculab::kernels::gpu {

// KiviExtras, with new tokens in the format of the activations.
struct KiviOnDevice {
  KvResidual residual{};
  const void* new_k = nullptr;                  // f16 or f32, [num_tokens, stride], as Q of the same call
  const void* new_v = nullptr;                  // the same
  const std::int32_t* residual_rows = nullptr;  // [num_seqs] which of the residuals is a sequence's
  std::int32_t stride = 0;                      // values between tokens, a multiple of 8
  Dtype new_dtype = Dtype::f16;
};

// Of quantize_groups and keep_residual. head_dim and residual.tokens are multiples of 32.
struct KiviTokens {
  KvCacheView cache{};                         // extras: KiviOnDevice
  const std::int32_t* block_tables = nullptr;  // [num_seqs, max_blocks_per_seq]
  int max_blocks_per_seq = 0;
  const std::int32_t* query_start_loc = nullptr;  // [num_seqs + 1], cumulative new tokens
  const std::int32_t* context_lens = nullptr;     // [num_seqs], new tokens included
  int num_seqs = 0;
  int most = 0;  // known to the host: groups that a sequence completes, or tokens that it keeps
};

}  // namespace dculab::kernels::gpu
