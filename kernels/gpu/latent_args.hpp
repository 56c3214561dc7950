// What the GPU kernels of multi-head latent attention are given: see args.hpp, and kernels/latent_ops.hpp for what they
// do.
#pragma once

#include <cstdint>

#include "kernels/gpu/args.hpp"
#include "kernels/latent_ops.hpp"
#include "lower/dculab_gpu/latent_tiling.hpp"

namespace dculab::kernels::gpu {

// Attention of new tokens over latents that the cache already holds, causal but for trees: one KV head of all query
// heads, whose values are the first kv_lora_rank of its keys. Unless the cache is bf16, queries in f32 are rounded to
// f16.
struct LatentAttention {
  LatentSizes sizes{};
  Input q{};                                   // [num_tokens, num_heads * latent_width]
  KvCacheView cache{};                         // of latents
  const std::int32_t* block_tables = nullptr;  // [num_seqs, max_blocks_per_seq]
  int max_blocks_per_seq = 0;
  DecodeQueries queries{};                     // with start_loc; of prefills too
  const std::int32_t* context_lens = nullptr;  // [num_seqs], tokens in the cache, new ones included
  int max_context_len = 0;                     // largest of context_lens, known to the host
  Output out{};                                // [num_tokens, num_heads * kv_lora_rank]
  int num_seqs = 0;
  float scale = 1.0F;
  int partition_tokens = 0;    // context tokens of a workgroup; 0 = single pass
  float* workspace = nullptr;  // two-pass only: paged_attention_workspace() for heads of kv_lora_rank
};

// Latents and keys of the tokens [begin, end) of a sequence, out of the cache.
struct GatherLatents {
  KvCacheView cache{};
  const std::int32_t* block_table = nullptr;  // of the sequence
  int begin = 0, end = 0;
  Output out{};  // [end - begin, latent_width]
};

// K and V of some heads, which latents were expanded to, to a cache that prefill_attention can read. Both are filled up
// with zeros to its heads' sizes.
struct StoreExpanded {
  LatentSizes sizes{};  // of num_heads: those that were expanded
  Input expanded{};     // [num_tokens, num_heads * expanded_head_dim]
  Input latents{};      // [num_tokens, latent_width]: the keys are the last qk_rope_head_dim
  KvCacheView cache{};  // f16, num_heads KV heads
  int first_slot = 0;   // of num_tokens in a row
  int num_tokens = 0;
};

// Products of each head with its own rows of kv_b_proj; which: AbsorbArgs. Weights: as Matmul's.
struct Absorb {
  LatentSizes sizes{};
  Input kv_b_proj{};  // [num_heads * expanded_head_dim, kv_lora_rank]
  WeightScales scales{};
  Input x{};                  // [num_tokens, x_stride]
  std::int64_t x_stride = 0;  // values between tokens
  Output y{};                 // [num_tokens, num_heads * latent_width], or [num_tokens, num_heads * v_head_dim]
  int num_tokens = 0;
};

}  // namespace dculab::kernels::gpu
