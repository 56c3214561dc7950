// The arithmetic of a transformer layer, as the engine calls it. One struct per kernel; shapes beside each pointer,
// slowest dimension first; activations are F32. `kernels/reference` states the truth in double precision,
// `kernels/cpu` is fast and must agree with it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/dtype.hpp"
#include "kernels/kv/extras.hpp"

namespace dculab::kernels {

// Of an FP8 matrix [out_features, in_features]: blocks of 2^row_shift rows and 2^column_shift columns share a scale; a
// weight is its value times that. Scales are kept times 256, because vectors of E4M3 are read as F16, whose exponent
// has another bias: a value comes out 256 times too small. Both factors are exact.
struct Fp8Scales {
  static constexpr int kAll = 31;              // shift of a block of all rows, or all columns
  static constexpr int kLeastColumnShift = 7;  // that kernels take
  static constexpr float kFactor = 256.0F;

  const float* times_256 = nullptr;  // [row blocks, column blocks]
  int row_shift = kAll, column_shift = kAll;
  int column_blocks = 1;  // of the matrix

  // Those of a row, block by block.
  [[nodiscard]] const float* of_row(int row) const {
    return times_256 + static_cast<std::ptrdiff_t>(row >> row_shift) * column_blocks;
  }
};

// A matrix of weights as the checkpoint stores it: [rows = out_features, columns = in_features], rows contiguous.
// On the CPU also int8 and int4: packed, with scales and zero points among the values (kernels/cpu/packed_weights.hpp).
struct WeightView {
  const void* data = nullptr;
  Dtype dtype = Dtype::f32;  // f32, f16, bf16; fp8_e4m3 with scales (CPU); int8 or int4 when packed
  int rows = 0;
  int group_size = 0;                         // packed: in-features that share a scale, a divisor of columns
  const std::int32_t* permutation = nullptr;  // packed: [columns] the in-feature in each stored column (act-order)
  Fp8Scales scales{};                         // fp8_e4m3
};

// y[m, :] = concatenation over i of x[m, k] * weights[i][rows, k]^T + biases[i]. Up to three matrices share x (Q, K, V;
// gate, up); all of them are plain or FP8, in one dtype, or all are packed.
struct MatmulArgs {
  const float* x = nullptr;  // [m, k]
  std::array<WeightView, 3> weights;
  std::array<const float*, 3> biases{};  // [rows] each, or null
  int num_weights = 1;
  float* y = nullptr;  // [m, sum of rows]
  int m = 0, k = 0;
  ActivationMode activations = ActivationMode::exact;  // int8: packed weights; bf16: BF16 ones
};

// residual += x (when x is given); out = residual / rms(residual) * weight.
struct RmsNormArgs {
  const float* x = nullptr;   // [num_tokens, width], may be null
  float* residual = nullptr;  // [num_tokens, width], updated in place when x is given
  WeightView weight;          // [width] values: rows = width
  float* out = nullptr;       // [num_tokens, width]
  int num_tokens = 0, width = 0;
  float epsilon = 1e-6F;
  float weight_offset = 0.0F;  // added to each weight: 1 for Gemma
};

// RMS norms in place of parts of a row: `num_heads` times `head_dim` values, all with the same weights.
struct HeadNormArgs {
  float* x = nullptr;       // [num_tokens, stride], first num_heads * head_dim used
  std::int64_t stride = 0;  // floats between tokens
  WeightView weight;        // [head_dim] values: rows = head_dim
  int num_tokens = 0, num_heads = 0, head_dim = 0;
  float epsilon = 1e-6F;
  float weight_offset = 0.0F;  // added to each weight
};

// residual += x where x is given; out = residual.
struct ResidualAddArgs {
  const float* x = nullptr;   // [count], may be null
  float* residual = nullptr;  // [count]
  float* out = nullptr;       // [count]
  std::int64_t count = 0;
};

// x = cap * tanh(x / cap), in place.
struct SoftCapArgs {
  float* x = nullptr;  // [count]
  std::int64_t count = 0;
  float cap = 0.0F;
};

struct EmbeddingArgs {
  const std::int32_t* token_ids = nullptr;  // [num_tokens], each in [0, table.rows)
  WeightView table;                         // [vocab, width]
  float* out = nullptr;                     // [num_tokens, width]
  int num_tokens = 0, width = 0;
  float scale = 1.0F;  // of the rows
};

// out = silu(gate) * up
struct SiluMulArgs {
  const float* gate_up = nullptr;  // [num_tokens, 2 * width]: gate, then up
  float* out = nullptr;            // [num_tokens, width]
  int num_tokens = 0, width = 0;
};

// The KV cache of one layer. Slot s is token s % block_size of block s / block_size. MLA's latents have v = k, one KV
// head, and as their V the first value_dim values of each row.
struct KvCacheView {
  void* k = nullptr;         // [num_blocks, num_kv_heads, block_size, head_dim], or what the format has (kernels/kv)
  void* v = nullptr;         // the same
  Dtype dtype = Dtype::f16;  // f32 (CPU), f16, bf16, fp8_e4m3, fp8_e5m2, int8, kivi4 or kivi2
  int num_blocks = 0, num_kv_heads = 0, block_size = 0, head_dim = 0;
  KvExtras extras{};  // what the format keeps beside the blocks
  int value_dim = 0;  // values of a head of V, where they are not head_dim; 0: they are
  // Heads of a block where the view is of num_kv_heads neighbours among them: k, v and extras point to the first of
  // these in block 0. 0: the view is of all. Attention reads such views of formats with KvFormat::tokens_together 1.
  int block_heads = 0;

  [[nodiscard]] constexpr int heads_in_block() const { return block_heads == 0 ? num_kv_heads : block_heads; }
  [[nodiscard]] constexpr int value_width() const { return value_dim == 0 ? head_dim : value_dim; }
  // Values from one token of v to the next.
  [[nodiscard]] constexpr int value_stride() const { return v == k ? head_dim : value_width(); }
};

// Rotates Q and K by their positions (half-split pairs (i, i + head_dim / 2), as Hugging Face's Llama does),
// or pairs of neighbours (2 i, 2 i + 1), of the first rotary_dim values of a head;
// writes Q and K back in place and K, V to the cache. A token whose slot is negative is not written (Opt-KV, see
// ReshapeAndCacheArgs). Without cos_sin nothing is rotated: models with ALiBi. With formats that
// quantize tokens together (KvFormat::tokens_together) nothing is written: K and V of the buffer are rounded to F16.
// KVQuant's are written as they are before K is rotated.
struct RopeAndCacheArgs {
  float* qkv = nullptr;                        // [num_tokens, (num_heads + 2 * num_kv_heads) * head_dim]: Q, K, V
  const std::int32_t* positions = nullptr;     // [num_tokens]
  const std::int64_t* slot_mapping = nullptr;  // [num_tokens]
  const float* cos_sin = nullptr;  // [max_position, rotary_dim]: cos of rotary_dim / 2 angles, then sin; or null
  KvCacheView cache;
  int num_tokens = 0, num_heads = 0;
  // [num_tokens, num_kv_heads]: a slot for each head instead of slot_mapping, where heads keep different tokens; or
  // null.
  const std::int64_t* head_slots = nullptr;
  int rotary_dim = 0;       // even; 0 = head_dim
  bool neighbours = false;  // which pairs are turned

  [[nodiscard]] int turned_values() const { return rotary_dim == 0 ? cache.head_dim : rotary_dim; }
};

// Sequences whose last tokens are a tree of guesses, the new ones among them. The place of a token is where it lies in
// the sequence's blocks; its position is how many tokens it sees before itself.
struct TreeMasks {
  // [num_tokens]: bit j is set when the token sees place context_len - size + j: itself, and all of its ancestors. Of
  // the new tokens of sequences without a tree: not read.
  const std::uint64_t* masks = nullptr;
  // [num_seqs], 64 at most, no fewer than the new tokens; 0: a sequence without a tree. Null: none has one.
  const std::int32_t* sizes = nullptr;

  [[nodiscard]] constexpr int size_of(int seq) const { return sizes == nullptr ? 0 : sizes[seq]; }
};

// Attention of new tokens over paged KV that already holds them, causal within the new tokens unless they belong to a
// tree. Serves prefill (chunks included) and decode (one new token per sequence, or several that are to be verified).
struct PagedAttentionArgs {
  const float* q = nullptr;   // [num_tokens, q_stride], first num_heads * head_dim used
  std::int64_t q_stride = 0;  // floats between tokens of q (Q may sit inside a QKV buffer)
  KvCacheView cache;
  const std::int32_t* block_tables = nullptr;  // [num_seqs, max_blocks_per_seq]
  int max_blocks_per_seq = 0;
  const std::int32_t* query_start_loc = nullptr;  // [num_seqs + 1], cumulative new tokens
  const std::int32_t* context_lens = nullptr;     // [num_seqs], tokens in the cache, new ones included
  float* out = nullptr;                           // [num_tokens, out_stride], first num_heads * value_width used
  int num_seqs = 0, num_heads = 0;
  float scale = 1.0F;        // usually 1 / sqrt(head_dim)
  float logit_soft_cap = 0;  // scores become cap * tanh(score / cap), before ALiBi; 0 = none
  // ALiBi: slope * (position of the key - position of the query) is added to a score. [num_heads], or null.
  // Source: Press et al., arXiv:2108.12409.
  const float* alibi_slopes = nullptr;
  int sliding_window = 0;       // a query sees itself and the window - 1 tokens before it; 0 = all
  std::int64_t out_stride = 0;  // floats between tokens of out; 0: num_heads * cache.value_width()
  TreeMasks tree{};             // not with formats that quantize tokens together

  [[nodiscard]] constexpr std::int64_t out_row() const {
    return out_stride > 0 ? out_stride : std::int64_t{num_heads} * cache.value_width();
  }
};

// Writes K and V of new tokens to their slots. Opt-KV's write filter (LLM-CoOpt, arXiv:2602.09323): a token of its skip
// set has a negative slot, and is not written (docs/decisions/0038-skip-set.md).
struct ReshapeAndCacheArgs {
  const float* k = nullptr;                    // [num_tokens, kv_stride], first num_kv_heads * head_dim used
  const float* v = nullptr;                    // [num_tokens, kv_stride]
  std::int64_t kv_stride = 0;                  // values between tokens
  const std::int64_t* slot_mapping = nullptr;  // [num_tokens]
  KvCacheView cache;
  int num_tokens = 0;
};

// Duplicates KV blocks, in order.
struct CopyBlocksArgs {
  KvCacheView cache;
  const std::int32_t* pairs = nullptr;  // [num_pairs, 2]: source, destination
  int num_pairs = 0;
};

// out = (x - mean(x)) / sqrt(variance(x) + epsilon) * weight + bias. With a residual: residual += added[0] + added[1]
// (those that are given, in this order), and the residual is what is normed. `out` may be what is normed.
struct LayerNormArgs {
  const float* x = nullptr;       // [num_tokens, width], unused with a residual
  const float* weight = nullptr;  // [width]
  const float* bias = nullptr;    // [width], may be null
  float* out = nullptr;           // [num_tokens, width]
  int num_tokens = 0, width = 0;
  float epsilon = 1e-5F;
  float* residual = nullptr;            // [num_tokens, width], or null
  std::array<const float*, 2> added{};  // [num_tokens, width] each, or null
};

enum class GeluKind : std::uint8_t { erf, tanh };  // exact; Hugging Face's "gelu_new" and BLOOM's

struct GeluArgs {
  const float* x = nullptr;  // [count]
  float* out = nullptr;      // [count]
  std::int64_t count = 0;
  GeluKind kind = GeluKind::erf;
};

// out = gelu(gate) * up
struct GeluMulArgs {
  const float* gate_up = nullptr;  // [num_tokens, 2 * width]: gate, then up
  float* out = nullptr;            // [num_tokens, width]
  int num_tokens = 0, width = 0;
  GeluKind kind = GeluKind::erf;
};

struct TopKArgs {
  const float* x = nullptr;         // [rows, width]
  float* values = nullptr;          // [rows, k], descending
  std::int32_t* indices = nullptr;  // [rows, k]; of equal values the lower index comes first
  int rows = 0, width = 0, k = 0;   // 1 <= k <= min(width, 64)
};

}  // namespace dculab::kernels
