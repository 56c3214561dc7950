// What the GPU's kernels of critical blocks are given. Meaning and shapes: kernels/kv/critical_blocks.hpp; every
// pointer is device memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/gpu/args.hpp"
#include "kernels/kv/critical_blocks.hpp"

namespace dculab::kernels::gpu {

// Cache in f16, bf16 or FP8; head_dim a multiple of 8, at most 256.
struct UpdateBlockBounds {
  KvCacheView cache{};  // K is read
  BlockBounds* bounds = nullptr;
  const std::int32_t* block_tables = nullptr;  // [num_seqs, max_blocks_per_seq]
  int max_blocks_per_seq = 0;
  const std::int32_t* query_start_loc = nullptr;  // [num_seqs + 1], cumulative new tokens; null: one a sequence
  const std::int32_t* context_lens = nullptr;     // [num_seqs], new tokens included
  int num_seqs = 0;
  int max_tokens_per_seq = 1;  // largest number of new tokens, known to the host
};

struct ChooseCriticalBlocks {
  Input q{};                  // [num_seqs, q_stride], f32 or f16
  std::int64_t q_stride = 0;  // values between sequences
  KvCacheView cache{};        // its shape; K and V are not read
  const BlockBounds* bounds = nullptr;
  const std::int32_t* block_tables = nullptr;  // [num_seqs, max_blocks_per_seq]
  int max_blocks_per_seq = 0;
  const std::int32_t* context_lens = nullptr;  // [num_seqs]
  int max_context_len = 0;                     // largest of context_lens, known to the host
  const std::int32_t* budgets = nullptr;       // [num_seqs] blocks
  int num_seqs = 0, num_heads = 0;
  int recent_blocks = 1;
  float* upper_bounds = nullptr;  // [num_seqs, num_kv_heads, max_blocks_per_seq]
  ChosenBlocks chosen{};          // queries: in the format of q
};

// The arguments that make decode attention walk over the chosen blocks. `attention`: as for all blocks, of one new
// token a sequence; its workspace is that of num_seqs * num_kv_heads sequences with a group of query heads each, whose
// longest context is max_chosen_len: the largest of chosen.context_lens, or more, known to the host. Throws InputError
// for ALiBi, sliding windows and several new tokens.
[[nodiscard]] PagedAttention over_chosen_blocks(const PagedAttention& attention, const ChosenBlocks& chosen,
                                                int max_chosen_len);

}  // namespace dculab::kernels::gpu
