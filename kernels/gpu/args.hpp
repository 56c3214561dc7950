// What each GPU kernel is given. Passed by value to the kernel, so plain data only; every pointer is device memory.
// Shapes beside each pointer, slowest dimension first. The meaning of each operation is stated in kernels/ops.hpp
// and, in double precision, in kernels/reference.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"
#include "kernels/ops.hpp"
#include "kernels/quantized_ops.hpp"

namespace dculab::lower::dculab_gpu {}

namespace dculab::kernels::gpu {

using namespace lower::dculab_gpu;  // how the kernels cut their work: what is launched is what is priced

// A tensor that a kernel reads or writes, in a format known at run time. Activations are f16 or f32; all activations
// of one launch share a format unless said otherwise.
struct Input {
  const void* data = nullptr;
  Dtype dtype = Dtype::f16;
};
struct Output {
  void* data = nullptr;
  Dtype dtype = Dtype::f16;
};

// Of fp8_e4m3 weights: blocks of 2^row_shift rows and 2^column_shift columns share a scale, which their values are
// multiplied by. 31: of all rows, or columns; columns are 8 at least.
struct WeightScales {
  const float* values = nullptr;  // [row blocks, column_blocks]
  int row_shift = 31, column_shift = 31;
  int column_blocks = 1;
  int first_row = 0;  // of the weights among the rows that are scaled
};

// y[m, n] = x[m, k] * w[n, k]^T + bias[n]. Weights are f16, bf16, f32 or fp8_e4m3; k is a multiple of 8. A bias, of
// this product and of the others, is [n] values, or null.
struct Matmul {
  Input x;   // [m, x_stride], the first k used
  Input w;   // [n, k]
  Output y;  // [m, y_stride], the first n used; f32 is allowed with f16 x (logits)
  int m = 0, n = 0, k = 0;
  int y_stride = 0;  // values between rows of y, >= n: several matrices may fill one row side by side
  float* workspace =
      nullptr;  // partial sums of split k: matmul_workspace() of lower/dculab_gpu/geometry.hpp; null: not split
  const float* bias = nullptr;
  int x_stride = 0;  // values between rows of x, a multiple of 8; 0: k
  WeightScales scales{};
};

// x_perm (act-order): the rows of qweight were sorted by group when they were loaded (gptq_layout.hpp); row i belongs
// to in-feature x_perm[i]. null: rows are in order. weight.g_idx is not read on the GPU. in_features is a multiple
// of 32.
struct GptqMatmul {
  Input x;  // [m, in_features]
  GptqWeightView weight;
  const std::int32_t* x_perm = nullptr;  // [in_features]
  Output y;                              // [m, y_stride]
  int m = 0;
  int y_stride = 0;
  float* workspace = nullptr;  // partial sums of split k: see gptq_matmul_workspace(); null: k is not split
  const float* bias = nullptr;
};

// The second pass of a product whose sum over k is split: adds the parts, in order.
struct SplitKSum {
  const float* partials = nullptr;  // [parts, m, n]
  Output y;                         // [m, y_stride], the first n used
  int parts = 1, m = 0, n = 0;
  int y_stride = 0;
  const float* bias = nullptr;  // [n], or null
};

struct Int8Matmul {
  const std::int8_t* x = nullptr;  // [m, k]
  const float* x_scale = nullptr;  // [m]
  const std::int8_t* w = nullptr;  // [n, k]
  const float* w_scale = nullptr;  // [n]
  Output y;                        // [m, y_stride]
  int m = 0, n = 0, k = 0;         // k a multiple of 16
  int y_stride = 0;
  const float* bias = nullptr;
};

struct QuantizeRows {
  Input x;                     // [m, k]
  std::int8_t* out = nullptr;  // [m, k]
  float* scale = nullptr;      // [m]
  int m = 0, k = 0;
};

// residual += x (when x is given); out = residual / rms(residual) * weight. The residual is kept in f32.
struct RmsNorm {
  Input x;                    // [num_tokens, width], data may be null
  float* residual = nullptr;  // [num_tokens, width]
  Input weight;               // [width], f32, f16 or bf16
  Output out;                 // [num_tokens, width]
  int num_tokens = 0, width = 0;
  float epsilon = 1e-6F;
};

// With a residual: residual += added[0] + added[1] (those that are given), and the residual is what is normed, not x.
// `out` may be what is normed.
struct LayerNorm {
  Input x;       // [num_tokens, width], f16 or f32; data null with a residual
  Input weight;  // [width], f32, f16 or bf16
  Input bias;    // [width], data may be null
  Output out;    // [num_tokens, width]
  int num_tokens = 0, width = 0;
  float epsilon = 1e-5F;
  float* residual = nullptr;  // [num_tokens, width], or null
  Input added[2]{};           // [num_tokens, width] each, data may be null
};

// RMS norms in place of parts of a row: num_heads times head_dim values, all with the same weights.
struct HeadNorm {
  Output x;                 // [num_tokens, stride], first num_heads * head_dim used
  std::int64_t stride = 0;  // values between tokens
  Input weight;             // [head_dim], f32, f16 or bf16
  int num_tokens = 0, num_heads = 0, head_dim = 0;
  float epsilon = 1e-6F;
};

// residual += x where x is given; out = residual.
struct ResidualAdd {
  Input x;                    // [count], data may be null
  float* residual = nullptr;  // [count]
  Output out;                 // [count]
  std::int64_t count = 0;
};

// x = cap * tanh(x / cap), in place.
struct SoftCap {
  Output x;  // [count]
  std::int64_t count = 0;
  float cap = 0.0F;
};

struct Embedding {
  const std::int32_t* token_ids = nullptr;  // [num_tokens]
  Input table;                              // [vocab, width], f32, f16 or bf16
  Output out;                               // [num_tokens, width]
  int num_tokens = 0, width = 0;
  float scale = 1.0F;  // of the rows
};

struct SiluAndMul {
  Input gate_up;  // [num_tokens, 2 * width]
  Output out;     // [num_tokens, width]
  int num_tokens = 0, width = 0;
};

// out = gelu(gate) * up
struct GeluAndMul {
  Input gate_up;  // [num_tokens, 2 * width]
  Output out;     // [num_tokens, width]
  int num_tokens = 0, width = 0;
  GeluKind kind = GeluKind::erf;
};

struct Gelu {
  Input x;     // [count]
  Output out;  // [count]
  std::int64_t count = 0;
  GeluKind kind = GeluKind::erf;
};

// Rotates Q and K in place, half-split pairs (i, i + head_dim / 2).
struct RotaryEmbedding {
  Output qkv;                               // [num_tokens, (num_heads + 2 * num_kv_heads) * head_dim]
  const std::int32_t* positions = nullptr;  // [num_tokens]
  const float* cos_sin = nullptr;           // [max_position, head_dim]: cos of head_dim / 2 angles, then sin
  int num_tokens = 0, num_heads = 0, num_kv_heads = 0, head_dim = 0;
};

// The same of the first rotary_dim values of each head, in halves of that part or in pairs of neighbours.
struct PartRotaryEmbedding {
  Output qkv;                               // [num_tokens, (num_heads + 2 * num_kv_heads) * head_dim]
  const std::int32_t* positions = nullptr;  // [num_tokens]
  const float* cos_sin = nullptr;           // [max_position, rotary_dim]: cos of rotary_dim / 2 angles, then sin
  int num_tokens = 0, num_heads = 0, num_kv_heads = 0, head_dim = 0, rotary_dim = 0;
  bool neighbours = false;
  std::int64_t stride = 0;  // values between tokens where rows hold something else; 0: Q, K and V
};

// Where KV heads keep different tokens: slots of their own.
struct HeadSlots {
  const std::int64_t* const* of_tokens = nullptr;  // [num_tokens] null: of slot_mapping; else, from `first` on,
                                                   // [num_kv_heads]. Null: all are of slot_mapping
  std::int64_t first = 0;
};

// Opt-KV's write filter: slots < 0 or in the skip set are not written.
struct ReshapeAndCache {
  Input k;                                     // [num_tokens, kv_stride], first num_kv_heads * head_dim used
  Input v;                                     // the same
  std::int64_t kv_stride = 0;                  // values between tokens
  const std::int64_t* slot_mapping = nullptr;  // [num_tokens]
  const std::uint32_t* skip_set = nullptr;     // bit s % 32 of word s / 32: slot s is skipped; or null
  KvCacheView cache;                           // f16, bf16, FP8 or int8; v = k: K alone is written (not int8)
  int num_tokens = 0;
  HeadSlots head_slots{};  // not with a skip set
};

// Copies whole blocks between or within caches of one layer (copy-on-write; the device side of a swap).
struct CopyBlocks {
  const void* source = nullptr;         // [num_blocks, block_bytes]
  void* destination = nullptr;          // [num_blocks, block_bytes]
  const std::int32_t* pairs = nullptr;  // [num_pairs, 2]; no block is both source and destination
  int num_pairs = 0;
  std::int64_t block_bytes = 0;  // a multiple of 4; of 16 it is faster
};

// Attention scores become size * tanh(score / size), before ALiBi. It is size * (1 - 2 / (1 + e^(steepness * score))),
// which kernels compute from scalar registers.
struct ScoreCap {
  float size = 0;       // 0 = none
  float steepness = 0;  // 2 / size

  ScoreCap() = default;
  explicit ScoreCap(float cap) : size(cap), steepness(cap > 0 ? 2 / cap : 0) {}
};

// Several new tokens of sequences that are decoded: chains, causal, and trees as kernels::TreeMasks describes them.
struct DecodeQueries {
  const std::int32_t* start_loc = nullptr;     // [num_seqs + 1], cumulative new tokens; the first may be any number.
                                               // Null: one a sequence, and what follows is not read
  const std::uint64_t* tree_masks = nullptr;   // [num_tokens]
  const std::int32_t* tree_sizes = nullptr;    // [num_seqs]; null: no sequence has a tree
  int num_tokens = 0, max_tokens_per_seq = 1;  // of the launch and of a sequence, at most: known to the host
};

// Decode: one query token per sequence, or several (`queries`). Unless the cache is bf16, queries in f32 are rounded to
// f16, in which they are multiplied: |q| above 65504 overflows.
struct PagedAttention {
  Input q;                    // [num_tokens, q_stride], first num_heads * head_dim used
  std::int64_t q_stride = 0;  // values between tokens of q
  KvCacheView cache;
  const std::int32_t* block_tables = nullptr;  // [num_seqs, max_blocks_per_seq]
  int max_blocks_per_seq = 0;
  const std::int32_t* context_lens = nullptr;  // [num_seqs], tokens in the cache, the query's own included
  int max_context_len = 0;                     // largest of context_lens, known to the host
  Output out;                                  // [num_tokens, num_heads * head_dim]
  int num_seqs = 0, num_heads = 0;
  float scale = 1.0F;
  ScoreCap score_cap{};
  const float* alibi_slopes = nullptr;  // [num_heads], or null
  int sliding_window = 0;               // 0 = all
  // Query heads that one workgroup serves: 0 = the whole group, 1 = one head. Of several tokens, as many rows (token
  // and head of the group) as fit.
  int heads_per_workgroup = 0;
  int partition_tokens = 0;  // context tokens per workgroup; 0 = single pass
  // Two-pass only. [num_tokens, num_heads, partitions, head_dim], then [num_tokens, num_heads, partitions] twice:
  // numerators, maxima and sums of each partition. See paged_attention_workspace().
  float* workspace = nullptr;
  DecodeQueries queries{};
};

// Prefill, chunks included: the new tokens of each sequence are already in the cache. Where K and V have heads of other
// sizes (cache.value_dim), they are those that latents expand to (latent_tiling.hpp), which may be larger than those of
// Q and of the result; each query head has a KV head then.
struct PrefillAttention {
  Input q;  // [num_tokens, q_stride]
  std::int64_t q_stride = 0;
  KvCacheView cache;
  const std::int32_t* block_tables = nullptr;  // [num_seqs, max_blocks_per_seq]
  int max_blocks_per_seq = 0;
  const std::int32_t* query_start_loc = nullptr;  // [num_seqs + 1], cumulative new tokens
  const std::int32_t* context_lens = nullptr;     // [num_seqs], tokens in the cache, new ones included
  int max_query_len = 0;                          // largest number of new tokens, known to the host
  Output out;                                     // [num_tokens, num_heads * head_dim]
  int num_seqs = 0, num_heads = 0;
  float scale = 1.0F;
  ScoreCap score_cap{};
  const float* alibi_slopes = nullptr;
  int sliding_window = 0;
  // Of expanded latents: values of a head of Q and of the result, and from one token of the result to the next.
  int query_dim = 0, out_dim = 0;
  std::int64_t out_stride = 0;
};

struct TopK {
  Input x;                          // [rows, width]
  float* values = nullptr;          // [rows, k], descending
  std::int32_t* indices = nullptr;  // [rows, k]
  int rows = 0, width = 0, k = 0;   // 1 <= k <= min(width, 64)
};

}  // namespace dculab::kernels::gpu
