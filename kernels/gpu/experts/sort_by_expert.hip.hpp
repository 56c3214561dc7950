// Rows of the experts from the tokens' choices: a counting sort, stable and without global atomics. A workgroup for
// each expert goes over all choices twice, to count and to place.
#pragma once

#include "kernels/gpu/expert_args.hpp"
#include "kernels/gpu/wave.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

struct SortShared {
  std::uint32_t rows[kMostExperts];        // of each expert
  std::int32_t sums[kExpertThreads / 32];  // of each wave
};

__device__ __forceinline__ int num_choices(const RouteTokens& args) {
  return args.num_tokens * args.rule.experts_per_token;
}

__device__ __forceinline__ int tiles_of(std::uint32_t rows, int tile_rows) {
  return (static_cast<int>(rows) + tile_rows - 1) / tile_rows;
}

__device__ __forceinline__ void count_rows(const RouteTokens& args, SortShared& shared) {
  for (int expert = thread_index(); expert < args.rule.num_experts; expert += kExpertThreads) shared.rows[expert] = 0;
  barrier();
  for (int choice = thread_index(); choice < num_choices(args); choice += kExpertThreads)
    (void)add_shared(shared.rows[load(args.choices.experts + choice)], 1);
  barrier();
}

// The expert's rows from `first_row` on, in the order of the choices: four neighbouring ones of a lane at a time.
template <int kWave>
__device__ __forceinline__ void place_rows(const RouteTokens& args, int first_row, SortShared& shared) {
  constexpr int kPack = 4;
  for (int begin = 0; begin < num_choices(args); begin += kExpertThreads * kPack) {
    const int own = begin + thread_index() * kPack;
    bool is_row[kPack];
    int count = 0;
    DCULAB_UNROLL
    for (int i = 0; i < kPack; ++i) {
      is_row[i] = own + i < num_choices(args) && load(args.choices.experts + own + i) == workgroup_x();
      count += is_row[i] ? 1 : 0;
    }
    const LaneSums sums = workgroup_prefix_sum<kWave, kExpertThreads>(count, shared.sums);
    int row = first_row + sums.before;
    DCULAB_UNROLL
    for (int i = 0; i < kPack; ++i) {
      if (!is_row[i]) continue;
      store(args.choices.choice_rows + own + i, static_cast<std::int32_t>(row));
      store(args.choices.row_tokens + row, static_cast<std::int32_t>((own + i) / args.rule.experts_per_token));
      ++row;
    }
    first_row += sums.total;
  }
}

// The expert's tiles; after the last expert's those that stay empty.
__device__ __forceinline__ void write_tiles(const RouteTokens& args, int first_row, int first_tile, int count) {
  const bool is_last = workgroup_x() == args.rule.num_experts - 1;
  const int end = is_last ? args.tiles.count : first_tile + count;
  for (int tile = first_tile + thread_index(); tile < end; tile += kExpertThreads) {
    const int row = first_row + (tile - first_tile) * args.tiles.rows;
    store(args.tiles.tiles + tile,
          tile < first_tile + count ? ExpertTile{static_cast<std::int32_t>(workgroup_x()), row} : ExpertTile{});
  }
}

template <int kWave>
__device__ __forceinline__ void count_bad_tokens(const RouteTokens& args, SortShared& shared) {
  int bad = 0;
  for (int token = thread_index(); token < args.num_tokens; token += kExpertThreads) bad += load(args.is_bad + token);
  const int total = workgroup_prefix_sum<kWave, kExpertThreads>(bad, shared.sums).total;
  if (thread_index() == 0) store(args.bad_tokens, static_cast<std::int32_t>(load(args.bad_tokens) + total));
}

// Workgroups: num_experts.
template <int kWave>
__global__ void __launch_bounds__(kExpertThreads) sort_by_expert_kernel(RouteTokens args) {
  DCULAB_SHARED(SortShared, shared);
  count_rows(args, shared);
  int rows_before = 0, tiles_before = 0;
  for (int expert = thread_index(); expert < workgroup_x(); expert += kExpertThreads) {
    rows_before += static_cast<int>(shared.rows[expert]);
    tiles_before += tiles_of(shared.rows[expert], args.tiles.rows);
  }
  const int first_row = workgroup_prefix_sum<kWave, kExpertThreads>(rows_before, shared.sums).total;
  const int first_tile = workgroup_prefix_sum<kWave, kExpertThreads>(tiles_before, shared.sums).total;
  const std::uint32_t rows = shared.rows[workgroup_x()];
  if (thread_index() == 0) {
    store(args.choices.first_rows + workgroup_x(), static_cast<std::int32_t>(first_row));
    if (workgroup_x() == args.rule.num_experts - 1)
      store(args.choices.first_rows + args.rule.num_experts, static_cast<std::int32_t>(num_choices(args)));
  }
  write_tiles(args, first_row, first_tile, tiles_of(rows, args.tiles.rows));
  if (workgroup_x() == 0) count_bad_tokens<kWave>(args, shared);
  if (rows > 0) place_rows<kWave>(args, first_row, shared);
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
