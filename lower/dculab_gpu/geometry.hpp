// How our GPU kernels cut their work into workgroups: what the launchers and the prices go by. Plain constants and
// functions, the same for every build.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "core/dtype.hpp"
#include "lower/dculab_gpu/split_k.hpp"

namespace dculab::lower::dculab_gpu {

[[nodiscard]] constexpr int ceiling_quotient(int a, int b) { return (a + b - 1) / b; }

// ---- Products of x [m, k] and w [n, k] ----

// One or a few rows of x: the weights stream past once, each wave holds kGemvColumns of their rows.
inline constexpr int kGemvMaxRows = 8;
inline constexpr int kGemvColumns = 4;            // output columns (rows of w) of one wave
inline constexpr int kGemvThreads = 256;          // of a workgroup
inline constexpr int kGemvSlabBytes = 16 * 1024;  // of x that a workgroup keeps in shared memory

// More rows: a workgroup computes a tile of y from slabs of k that go through shared memory.
inline constexpr int kGemmThreads = 256;
inline constexpr int kGemmColumns = 128;                          // of a tile
inline constexpr int kGemmSmallRows = 32;                         // of a tile, for few rows,
inline constexpr int kGemmMediumRows = 64, kGemmLargeRows = 128;  // for more, for many
inline constexpr int kGemmSlabWords = 16;                         // 4-byte words of k: one float, 2 halves or 4 int8
inline constexpr int kGemmSlabValues = 4 * kGemmSlabWords;        // the most values that a slab can hold

[[nodiscard]] constexpr int gemm_tile_rows(int m) {
  return m <= kGemmSmallRows ? kGemmSmallRows : m <= kGemmMediumRows ? kGemmMediumRows : kGemmLargeRows;
}

enum class MatmulKernel : std::uint8_t { gemv, gemm };

struct MatmulPlan {
  MatmulKernel kernel = MatmulKernel::gemv;
  int rows = 1;                         // of x per workgroup: 1, 2, 4 or 8 for gemv; 32, 64 or 128 for gemm
  int row_tiles = 1, column_tiles = 1;  // gemm
  SplitK split{};                       // gemm: of k; above one part split_k_sum_kernel follows
};

// k is split where the tiles would not fill the device; but the partial sums (4 bytes, written and read) must not be
// more traffic than the weights (2 bytes): parts of at least 4 m values.
[[nodiscard]] constexpr MatmulPlan plan_matmul(int m, int n, int k) {
  if (m <= kGemvMaxRows) return {MatmulKernel::gemv, m <= 2 ? m : m <= 4 ? 4 : 8, 1, 1, {1, k}};
  MatmulPlan plan;
  plan.kernel = MatmulKernel::gemm;
  plan.rows = gemm_tile_rows(m);
  plan.row_tiles = ceiling_quotient(m, plan.rows);
  plan.column_tiles = ceiling_quotient(n, kGemmColumns);
  const int shortest = std::max(256, ceiling_quotient(4 * m, kGemmSlabValues) * kGemmSlabValues);
  plan.split = split_k(plan.row_tiles * plan.column_tiles, k, shortest);
  return plan;
}

// Floats that Matmul::workspace must hold; where it is null, k is not split.
[[nodiscard]] constexpr std::size_t matmul_workspace(int m, int n, int k) {
  return split_k_workspace(plan_matmul(m, n, k).split, m, n);
}

// ---- The KV cache ----

inline constexpr int kKvCacheThreads = 256;  // the most of a workgroup

// Lanes of the workgroup that moves K and V of one token, 8 values at a time.
[[nodiscard]] constexpr int kv_cache_threads(int num_kv_heads, int head_dim) {
  return std::min(kKvCacheThreads, ceiling_quotient(2 * num_kv_heads * head_dim / 8, 64) * 64);
}

// ---- Attention ----

// Sizes of heads that both attention kernels serve. That of decode serves every multiple of 16 from 32 to 256.
inline constexpr int kHeadDims[] = {32, 64, 80, 96, 128, 256};

[[nodiscard]] constexpr bool is_supported_head_dim(int head_dim) {
  return std::find(std::begin(kHeadDims), std::end(kHeadDims), head_dim) != std::end(kHeadDims);
}

// ---- Attention of prefill ----

// A workgroup holds a tile of queries, whose rows are the query heads of one KV head, token by token, and goes over the
// context in tiles of tokens. Each group of kPrefillLanes lanes has a few of the rows.
inline constexpr int kPrefillThreads = 256;
inline constexpr int kPrefillLanes = 16;

// Halves are multiplied in pairs; else K, V and the weights of the softmax are f32 in shared memory.
enum class PrefillArithmetic : std::uint8_t { half_pairs, floats };

[[nodiscard]] constexpr PrefillArithmetic prefill_arithmetic(Dtype query, Dtype cache) {
  return query == Dtype::f16 && cache != Dtype::bf16 ? PrefillArithmetic::half_pairs : PrefillArithmetic::floats;
}

struct PrefillTile {
  int rows = 0;    // of queries: tokens x query heads of the group
  int tokens = 0;  // of the context
};

// As many rows as 20 KB of shared memory hold, at most 64.
[[nodiscard]] constexpr PrefillTile prefill_tile(PrefillArithmetic arithmetic, int head_dim) {
  const int values_per_word = arithmetic == PrefillArithmetic::half_pairs ? 2 : 1;
  const int fitting = 20 * 1024 * values_per_word / (4 * head_dim);
  return {fitting >= 64 ? 64 : fitting >= 32 ? 32 : 16, kPrefillLanes * values_per_word};
}

}  // namespace dculab::lower::dculab_gpu
