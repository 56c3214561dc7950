// How our GPU kernels cut the products of a mixture of experts into tiles, before anybody knows which experts the
// tokens choose: what the launchers and the prices go by.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/dtype.hpp"
#include "lower/dculab_gpu/geometry.hpp"
#include "lower/dculab_gpu/gptq_plan.hpp"

namespace dculab::lower::dculab_gpu {

inline constexpr int kMostExperts = 512;
inline constexpr int kMostExpertGroups = 32;
inline constexpr int kMostExpertsPerToken = 32;
inline constexpr int kRouteThreads = 256;   // of route_tokens_kernel: a wave for each token
inline constexpr int kExpertThreads = 256;  // of sort_by_expert_kernel: a workgroup for each expert
inline constexpr int kCombinePiece = 2048;  // values of a token that a workgroup of combine_experts_kernel adds up

// Tiles of up to `rows` rows of one expert each. Experts have different numbers of rows, so the number of tiles is only
// known on the device; the launch has as many as there can be, and those too many leave at once.
struct ExpertPlan {
  int rows = 1;            // of a tile: 1, 2, 4 or 8 for the GEMV; 32, 64 or 128 for the GEMM
  std::int64_t tiles = 0;  // the most

  [[nodiscard]] constexpr bool is_gemv() const { return rows <= kGemvMaxRows; }
};

// `rows`: of all experts. Those of an expert differ around the mean; the tile of the GEMV has room for twice the mean,
// so that few experts' weights are asked for twice. Experts of more than four rows on average have the GEMM, with a
// tile that the mean fits in.
[[nodiscard]] constexpr ExpertPlan plan_expert_matmul(std::int64_t rows, int num_experts, Dtype weights) {
  if (rows <= 0) return {};
  const std::int64_t mean = (rows + num_experts - 1) / num_experts, twice = (2 * rows + num_experts - 1) / num_experts;
  const int most_rows = weights == Dtype::int4 ? kGptqTileRows : kGemmLargeRows;
  ExpertPlan plan;
  plan.rows = twice <= kGemvMaxRows
                  ? static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(twice)))
                  : std::min(gemm_tile_rows(static_cast<int>(std::min<std::int64_t>(mean, most_rows))), most_rows);
  const std::int64_t touched = std::min<std::int64_t>(rows, num_experts);
  plan.tiles = std::min(rows, (rows + (plan.rows - 1) * touched) / plan.rows);
  return plan;
}

}  // namespace dculab::lower::dculab_gpu
