// What the GPU's kernels of H2O are given: sums of attention, and the choice of what goes. Meaning of the sums:
// AttentionScoresArgs of kernels/kv/heavy_hitters.hpp. Every pointer is device memory.
#pragma once

#include <cstdint>

#include "kernels/gpu/args.hpp"

namespace dculab::kernels::gpu {

// What a sequence has besides its blocks, of all layers.
struct HeavyHitterState {
  float* sums = nullptr;               // [num_layers, num_kv_heads, capacity], by place in the block table
  std::int32_t* positions = nullptr;   // the same shape: where the tokens stand in their text
  std::int64_t* next_slots = nullptr;  // [num_layers, num_kv_heads] of the cache: what the next token takes
};

// Adds the softmax weights of the new tokens to the sums. Then, of a sequence that has all its tokens, chooses for each
// KV head the slot that the next token takes: that of the smallest sum outside the window, of equal sums of the oldest.
// Its sum begins anew, its position is the next token's. Cache in f16, bf16, FP8 or int8; head_dim a multiple
// of 16 bytes' values, at most 256.
struct AttentionScores {
  Input q{};                                   // [num_tokens, q_stride], f32 or f16, first num_heads * head_dim used
  std::int64_t q_stride = 0;                   // values between tokens
  KvCacheView cache{};                         // K is read
  const std::int32_t* block_tables = nullptr;  // [num_seqs, max_blocks_per_seq]
  int max_blocks_per_seq = 0;
  const std::int32_t* query_start_loc = nullptr;  // [num_seqs + 1], cumulative new tokens, from 0
  const std::int32_t* context_lens = nullptr;     // [num_seqs], new tokens included
  int max_context_len = 0;                        // largest of context_lens, known to the host
  int num_seqs = 0, num_heads = 0;
  float scale = 1.0F;
  const HeavyHitterState* states = nullptr;      // [num_seqs]
  const std::int32_t* next_positions = nullptr;  // [num_seqs] of the token that comes next
  int layer = 0;
  int capacity = 0, window = 0;  // tokens that a sequence keeps; of these, the newest that stay, the next one included
};

}  // namespace dculab::kernels::gpu
