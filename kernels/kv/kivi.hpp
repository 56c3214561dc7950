// KIVI's cache format: 4 or 2 bits a value, with a scale and a zero point for every 32 values; keys per channel over 32
// tokens, values per token over 32 channels; the newest tokens stay in F16. Source: Liu et al., arXiv:2402.02750.
//
// zero = the smallest of the 32 values, which have F16 precision; scale = (largest - smallest) / (2^bits - 1), in F16;
// code = (value - zero) / scale in F32, to the nearest even and at most 2^bits - 1, or 0 where scale is 0. A code
// stands for zero + scale * code.
//
// A unit is 32 values that share a scale and a zero point, packed so that byte j holds value j in its lowest bits,
// value j + bytes in the next ones, and so on. The record of a block and KV head holds units as [codes][scales][zeros]:
//   K: a unit is one channel of one group of 32 tokens. A block of at least 32 tokens has [groups, head_dim] units; of
//      smaller blocks, 32 / block_size in a row share a group, and each holds an equal part of its channels.
//   V: a unit is 32 channels of one token: [block_size, head_dim / 32].
// Both have block_size * head_dim / 32 units, so K and V of a block are equally long, and a copied block is complete.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kv/kivi.hpp"
#include "kernels/ops.hpp"

namespace dculab::kernels {

using dculab::is_kivi;
using dculab::kivi_quantized_tokens;
using dculab::kKiviGroup;  // values of a unit

// The newest tokens of each running sequence, in F16. Token t of a sequence lies in row t % tokens.
struct KvResidual {
  std::uint16_t* k = nullptr;  // [sequences, num_kv_heads, tokens, head_dim]
  std::uint16_t* v = nullptr;  // the same
  int tokens = 0;              // a multiple of kKiviGroup
};

// What the sequences of a call have besides their blocks.
struct NewKv {
  const float* k = nullptr;                     // [num_tokens, stride], the new tokens', rounded to F16
  const float* v = nullptr;                     // the same
  std::int64_t stride = 0;                      // floats between tokens
  const std::int32_t* residual_rows = nullptr;  // [num_seqs] which of the residuals is a sequence's
};

// Of a cache; new_kv by those who read or write the residuals. In attention a query sees the oldest groups quantized
// (kivi_quantized_tokens says how many), whether or not they are quantized already.
struct KiviExtras {
  KvResidual residual{};
  NewKv new_kv{};
};

// Before attention: quantizes the groups of tokens that the new tokens complete (quantize_groups); after it: puts the
// new tokens into the residuals (keep_residual).
struct KiviArgs {
  KvCacheView cache;
  const std::int32_t* block_tables = nullptr;  // [num_seqs, max_blocks_per_seq]
  int max_blocks_per_seq = 0;
  const std::int32_t* query_start_loc = nullptr;  // [num_seqs + 1], cumulative new tokens
  const std::int32_t* context_lens = nullptr;     // [num_seqs], new tokens included
  int num_seqs = 0;
};

// Where a unit lies.
struct KiviUnit {
  std::uint8_t* codes;   // [4 * bits]
  std::uint16_t* scale;  // F16
  std::uint16_t* zero;   // F16: what code 0 stands for
};

struct KiviLayout {
  int code_bits, units;  // units of a record

  explicit KiviLayout(const KvCacheView& cache)
      : code_bits(bits(cache.dtype)), units(cache.block_size * cache.head_dim / kKiviGroup) {}
  [[nodiscard]] int code_bytes() const { return kKiviGroup / 8 * code_bits; }  // of a unit
  [[nodiscard]] std::ptrdiff_t record_bytes() const { return std::ptrdiff_t{units} * (code_bytes() + 4); }

  [[nodiscard]] KiviUnit unit(void* pool, std::ptrdiff_t record, int index) const {
    auto* const start = static_cast<std::uint8_t*>(pool) + record * record_bytes();
    auto* const scales = reinterpret_cast<std::uint16_t*>(start + std::ptrdiff_t{units} * code_bytes());
    return {start + std::ptrdiff_t{index} * code_bytes(), scales + index, scales + units + index};
  }
};

// Channel `d` of the 32 tokens from `first_token` (a multiple of 32) of a sequence.
[[nodiscard]] inline KiviUnit kivi_key(const KvCacheView& cache, const std::int32_t* block_table, int kv_head,
                                       int first_token, int d) {
  const KiviLayout layout(cache);
  const int part = d / layout.units;  // of a group that spans blocks; 0 when it does not
  const std::int32_t block = block_table[first_token / cache.block_size + part];
  const int index = first_token % cache.block_size / kKiviGroup * cache.head_dim + d - part * layout.units;
  return layout.unit(cache.k, std::ptrdiff_t{block} * cache.num_kv_heads + kv_head, index);
}

// Channels [32 * part, 32 * part + 32) of one token.
[[nodiscard]] inline KiviUnit kivi_value(const KvCacheView& cache, const std::int32_t* block_table, int kv_head,
                                         int token, int part) {
  const std::int32_t block = block_table[token / cache.block_size];
  const int index = token % cache.block_size * (cache.head_dim / kKiviGroup) + part;
  return KiviLayout(cache).unit(cache.v, std::ptrdiff_t{block} * cache.num_kv_heads + kv_head, index);
}

}  // namespace dculab::kernels
