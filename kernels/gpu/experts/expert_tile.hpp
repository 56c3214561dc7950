// Which rows a workgroup of an expert product takes.
#pragma once

#include "kernels/gpu/expert_args.hpp"
#include "kernels/gpu/matmul/x_rows.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// The same in all lanes.
struct TileOfRows {
  int expert = 0;
  int first_row = 0;
  int count = 0;  // 0: the launch has more workgroups than there are tiles
};

// The one with number `tile`.
__device__ __forceinline__ TileOfRows find_tile(const ExpertRows& rows, int tile, int tile_rows) {
  const auto packed = load(reinterpret_cast<const Pack<std::int32_t, 2>*>(rows.tiles.tiles + tile));
  const int expert = same_in_wave(packed[0]), first_row = same_in_wave(packed[1]);
  if (expert < 0) return {};
  return {expert, first_row, smaller(tile_rows, same_in_wave(load(rows.first_rows + expert + 1)) - first_row)};
}

// Its rows of x, of k values each.
template <typename X>
__device__ __forceinline__ ChosenRows<X> x_rows(const Input& x, const ExpertRows& rows, const TileOfRows& tile, int k) {
  const X* data = static_cast<const X*>(x.data);
  if (rows.row_tokens != nullptr) return {data, rows.row_tokens + tile.first_row, tile.count, k};
  return {data + static_cast<std::int64_t>(tile.first_row) * k, nullptr, tile.count, k};
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
