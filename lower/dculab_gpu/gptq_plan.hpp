// Which kernel serves a GPTQ product, and how is its work divided?
#pragma once

#include <algorithm>
#include <cstddef>

#include "lower/dculab_gpu/split_k.hpp"

namespace dculab::lower::dculab_gpu {

inline constexpr int kGptqTileRows = 64;  // of y that a workgroup of the GEMM computes at most
inline constexpr int kGptqThreads = 256;
inline constexpr int kGptqGemvMaxRows = 8;
inline constexpr int kGptqGemvColumns = 32;  // of y, per workgroup
inline constexpr int kGptqLaneColumns = 4;   // 16 bytes of packed weights: 4 columns, 8 in-features
inline constexpr int kGptqChunk = 32;        // in-features that a lane takes at a time
inline constexpr int kGptqLanesPerChunk = kGptqGemvColumns / kGptqLaneColumns;
inline constexpr int kGptqRound = kGptqThreads / kGptqLanesPerChunk * kGptqChunk;  // in-features of a workgroup
inline constexpr int kGptqGemmColumns = 128;
inline constexpr int kGptqGemmStep = 32;       // in-features of a tile
inline constexpr int kGptqGemmShortest = 256;  // in-features that a workgroup is given at least

struct GptqPlan {
  int rows = 1;                         // of x per workgroup: up to 8 for the GEMV, 32 or kGptqTileRows for the GEMM
  int column_tiles = 1, row_tiles = 1;  // of y
  SplitK split;

  [[nodiscard]] constexpr bool is_gemv() const { return rows <= kGptqGemvMaxRows; }
};

[[nodiscard]] constexpr GptqPlan plan_gptq_matmul(int m, int n, int k) {
  GptqPlan plan;
  if (m <= kGptqGemvMaxRows) {
    while (plan.rows < m) plan.rows *= 2;
    plan.column_tiles = (n + kGptqGemvColumns - 1) / kGptqGemvColumns;
    plan.split = split_k(plan.column_tiles, k, kGptqRound);
  } else {
    plan.rows = m <= 32 ? 32 : kGptqTileRows;
    plan.row_tiles = (m + plan.rows - 1) / plan.rows;
    plan.column_tiles = (n + kGptqGemmColumns - 1) / kGptqGemmColumns;
    // The partial sums (8 m bytes a column, written and read) must not outgrow the work on the weights.
    const int shortest = std::max(kGptqGemmShortest, (4 * m + kGptqGemmStep - 1) / kGptqGemmStep * kGptqGemmStep);
    plan.split = split_k(plan.column_tiles * plan.row_tiles, k, shortest);
  }
  return plan;
}

// Floats that GptqMatmul::workspace must hold.
[[nodiscard]] constexpr std::size_t gptq_matmul_workspace(int m, int n, int k) {
  return split_k_workspace(plan_gptq_matmul(m, n, k).split, m, n);
}

}  // namespace dculab::lower::dculab_gpu
