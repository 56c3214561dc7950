// The arithmetic of a transformer layer, as the engine calls it. One struct per kernel; shapes beside each pointer,
// slowest dimension first; activations are F32. `kernels/reference` states the truth in double precision,
// `kernels/cpu` is fast and must agree with it.
#pragma once

#include <array>
#include <cstdint>

#include "core/dtype.hpp"

namespace dculab::kernels {

// A matrix of weights as the checkpoint stores it: [rows = out_features, columns = in_features], rows contiguous.
struct WeightView {
  const void* data = nullptr;
  Dtype dtype = Dtype::f32;  // f32, f16 or bf16
  int rows = 0;
};

// y[m, :] = concatenation over i of x[m, k] * weights[i][rows, k]^T. Up to three matrices share x (Q, K, V; gate, up).
struct MatmulArgs {
  const float* x = nullptr;  // [m, k]
  std::array<WeightView, 3> weights;
  int num_weights = 1;
  float* y = nullptr;  // [m, sum of rows]
  int m = 0, k = 0;
};

// residual += x (when x is given); out = residual / rms(residual) * weight.
struct RmsNormArgs {
  const float* x = nullptr;   // [num_tokens, width], may be null
  float* residual = nullptr;  // [num_tokens, width], updated in place when x is given
  WeightView weight;          // [width] values: rows = width
  float* out = nullptr;       // [num_tokens, width]
  int num_tokens = 0, width = 0;
  float epsilon = 1e-6F;
};

struct EmbeddingArgs {
  const std::int32_t* token_ids = nullptr;  // [num_tokens], each in [0, table.rows)
  WeightView table;                         // [vocab, width]
  float* out = nullptr;                     // [num_tokens, width]
  int num_tokens = 0, width = 0;
};

// out = silu(gate) * up
struct SiluMulArgs {
  const float* gate_up = nullptr;  // [num_tokens, 2 * width]: gate, then up
  float* out = nullptr;            // [num_tokens, width]
  int num_tokens = 0, width = 0;
};

// The KV cache of one layer. Slot s is token s % block_size of block s / block_size.
struct KvCacheView {
  void* k = nullptr;         // [num_blocks, num_kv_heads, block_size, head_dim]
  void* v = nullptr;         // [num_blocks, num_kv_heads, block_size, head_dim]
  Dtype dtype = Dtype::f16;  // f32, f16 or bf16
  int num_blocks = 0, num_kv_heads = 0, block_size = 0, head_dim = 0;
};

// Rotates Q and K by their positions (half-split pairs (i, i + head_dim / 2), as Hugging Face's Llama does),
// writes Q and K back in place and K, V to the cache. A slot < 0 is not written.
struct RopeAndCacheArgs {
  float* qkv = nullptr;                        // [num_tokens, (num_heads + 2 * num_kv_heads) * head_dim]: Q, K, V
  const std::int32_t* positions = nullptr;     // [num_tokens]
  const std::int64_t* slot_mapping = nullptr;  // [num_tokens]
  const float* cos_sin = nullptr;              // [max_position, head_dim]: cos of head_dim / 2 angles, then sin
  KvCacheView cache;
  int num_tokens = 0, num_heads = 0;
};

// Attention of new tokens over paged KV that already holds them, causal within the new tokens.
// Serves prefill (chunks included) and decode (one new token per sequence).
struct PagedAttentionArgs {
  const float* q = nullptr;   // [num_tokens, q_stride], first num_heads * head_dim used
  std::int64_t q_stride = 0;  // floats between tokens of q (Q may sit inside a QKV buffer)
  KvCacheView cache;
  const std::int32_t* block_tables = nullptr;  // [num_seqs, max_blocks_per_seq]
  int max_blocks_per_seq = 0;
  const std::int32_t* query_start_loc = nullptr;  // [num_seqs + 1], cumulative new tokens
  const std::int32_t* context_lens = nullptr;     // [num_seqs], tokens in the cache, new ones included
  float* out = nullptr;                           // [num_tokens, num_heads * head_dim]
  int num_seqs = 0, num_heads = 0;
  float scale = 1.0F;  // 1 / sqrt(head_dim)
};

}  // namespace dculab::kernels
