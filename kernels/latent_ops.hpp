// The arithmetic of multi-head latent attention beside attention itself. A token's row in the cache is its latent, from
// which K and V of all heads follow, and the one key that is rotated. One struct per kernel; shapes beside each
// pointer, slowest dimension first; activations are F32.
// Source: DeepSeek-V2, arXiv:2405.04434, section 2.1; transformers, models/deepseek_v3/modeling_deepseek_v3.py.
#pragma once

#include <cstdint>

#include "kernels/ops.hpp"

namespace dculab::kernels {

struct LatentSizes {
  int num_heads = 0;
  int kv_lora_rank = 0;                            // of a latent
  int qk_nope_head_dim = 0, qk_rope_head_dim = 0;  // of a query's and key's head: not rotated, rotated
  int v_head_dim = 0;

  // Of a token in the cache.
  [[nodiscard]] constexpr int latent_width() const { return kv_lora_rank + qk_rope_head_dim; }
  [[nodiscard]] constexpr int qk_head_dim() const { return qk_nope_head_dim + qk_rope_head_dim; }
  // Of a head in what a latent expands to: K without its rotated part, then V.
  [[nodiscard]] constexpr int expanded_head_dim() const { return qk_nope_head_dim + v_head_dim; }
};

// Rotates the last qk_rope_head_dim values of each query head, and each token's key, in place; writes latents and keys
// to the cache. A token whose slot is negative is not written.
struct LatentRopeArgs {
  LatentSizes sizes;
  float* q = nullptr;                          // [num_tokens, q_stride], first num_heads * qk_head_dim used
  std::int64_t q_stride = 0;                   // floats between tokens
  float* latents = nullptr;                    // [num_tokens, latent_stride], first latent_width used: latent, key
  std::int64_t latent_stride = 0;              // floats between tokens
  const std::int32_t* positions = nullptr;     // [num_tokens]
  const std::int64_t* slot_mapping = nullptr;  // [num_tokens]
  const float* cos_sin = nullptr;              // [max_position, qk_rope_head_dim]: cos of half as many angles, then sin
  KvCacheView cache;                           // of latents: one KV head of latent_width, v = k
  int num_tokens = 0;
  bool neighbours = true;  // which pairs are turned
};

// Latents and keys of the tokens [begin, end) of a sequence, out of the cache.
struct GatherLatentsArgs {
  LatentSizes sizes;
  KvCacheView cache;                          // of latents
  const std::int32_t* block_table = nullptr;  // of the sequence
  int begin = 0, end = 0;
  float* latents = nullptr;  // [end - begin, kv_lora_rank]
  float* keys = nullptr;     // [end - begin, qk_rope_head_dim]
};

// Writes K and V of all heads, which latents were expanded to, to a cache that attention can read.
struct StoreExpandedArgs {
  LatentSizes sizes;
  const float* expanded = nullptr;  // [num_tokens, num_heads * expanded_head_dim]
  const float* keys = nullptr;      // [num_tokens, qk_rope_head_dim]: the last values of K of each head
  KvCacheView cache;                // F32, num_heads KV heads, head_dim = qk_head_dim, value_dim = v_head_dim
  std::int64_t first_slot = 0;      // of num_tokens in a row
  int num_tokens = 0;
};

// Products of each head with its own rows of kv_b_proj, which take the place of expanding latents.
//   absorb_k: y = (x without its rotated part) * (the rows of K), then x's rotated part: a query over latents.
//   absorb_v: y = x * (the rows of V)^T: a head's output of what attention over latents gave.
struct AbsorbArgs {
  LatentSizes sizes;
  WeightView kv_b_proj;       // [num_heads * expanded_head_dim, kv_lora_rank]: of each head the rows of K, those of V
  const float* x = nullptr;   // [num_tokens, x_stride]; first num_heads * qk_head_dim, or num_heads * kv_lora_rank used
  std::int64_t x_stride = 0;  // floats between tokens
  float* y = nullptr;         // [num_tokens, num_heads * latent_width], or [num_tokens, num_heads * v_head_dim]
  int num_tokens = 0;
};

}  // namespace dculab::kernels
