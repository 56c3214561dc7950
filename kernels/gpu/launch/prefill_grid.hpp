// The workgroups of prefill attention.
#pragma once

#include "kernels/gpu/args.hpp"
#include "kernels/gpu/runtime_api.hpp"
#include "lower/dculab_gpu/geometry.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

[[nodiscard]] inline LaunchShape prefill_grid(const PrefillAttention& args, int rows_of_tile) {
  const int rows = args.max_query_len * (args.num_heads / args.cache.num_kv_heads);
  return {.x = ceiling_quotient(rows, rows_of_tile),
          .y = args.cache.num_kv_heads,
          .z = args.num_seqs,
          .threads = kPrefillThreads};
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
