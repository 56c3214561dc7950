#include "kernels/gpu/kv/critical_blocks.hip.hpp"

#include "kernels/gpu/kv/critical_blocks_choice.hip.hpp"
#include "kernels/gpu/launch/cache_type.hpp"
#include "kernels/gpu/launch/dispatch.hpp"
#include "kernels/gpu/launch/start.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {
namespace {

void require_bounded_cache(const KvCacheView& cache, const BlockBounds* bounds) {
  if (cache.head_dim < kWide || cache.head_dim > kBoundsMaxHeadDim || cache.head_dim % kWide != 0)
    throw InputError("bounds of keys with head_dim " + std::to_string(cache.head_dim) +
                     " have no GPU kernel; there is one for multiples of " + std::to_string(kWide) + " up to " +
                     std::to_string(kBoundsMaxHeadDim));
  require_aligned("bounds of keys", bounds);
}

template <int kWave>
void start_bounds(Stream& stream, const ChooseLaunch& described, int group_size, int parts) {
  const ChooseCriticalBlocks& args = described.args;
  const LaunchShape shape{.x = parts, .y = args.num_seqs, .z = args.cache.num_kv_heads, .threads = kBoundsThreads};
  const int heads = bounds_lane_heads(group_size);
  if (heads == 1) return launch(stream, shape, bound_blocks_kernel<kWave, 1>, described);
  if (heads == 2) return launch(stream, shape, bound_blocks_kernel<kWave, 2>, described);
  if (heads == 4) return launch(stream, shape, bound_blocks_kernel<kWave, 4>, described);
  launch(stream, shape, bound_blocks_kernel<kWave, kBoundsLaneHeads>, described);
}

}  // namespace

void start(Stream& stream, const UpdateBlockBounds& args) {
  const KvCacheView& cache = args.cache;
  require_bounded_cache(cache, args.bounds);
  require_aligned("the K cache", cache.k);
  // New tokens that begin with the last of a block touch one block more than those that begin with its first.
  const int blocks = (args.max_tokens_per_seq + cache.block_size - 2) / cache.block_size + 1;
  with_cache_type(cache.dtype, [&]<typename Stored>() {
    with_wave_size(stream, [&]<int kWave>() {
      const int waves = kBoundsThreads / kWave;
      launch(
          stream,
          {.x = blocks, .y = args.num_seqs, .z = (cache.num_kv_heads + waves - 1) / waves, .threads = kBoundsThreads},
          update_block_bounds_kernel<kWave, Stored>, {args, bounds_row_lanes(cache.head_dim)});
    });
  });
}

void start(Stream& stream, const ChooseCriticalBlocks& args) {
  const KvCacheView& cache = args.cache;
  require_activation("the query of critical blocks", args.q.dtype);
  require_bounded_cache(cache, args.bounds);
  require_aligned("the query of critical blocks", args.q.data);
  require_multiple("critical blocks", "query heads", args.num_heads, cache.num_kv_heads);
  require_multiple("critical blocks", "values between queries", static_cast<int>(args.q_stride),
                   128 / bits(args.q.dtype));
  if (args.recent_blocks < 1) throw InputError("critical blocks on the GPU: the block being written is always chosen");
  const ChooseLaunch described{args, bounds_row_lanes(cache.head_dim)};
  const int blocks = (args.max_context_len + cache.block_size - 1) / cache.block_size;
  with_wave_size(stream, [&]<int kWave>() {
    start_bounds<kWave>(stream, described, args.num_heads / cache.num_kv_heads,
                        (blocks + kBoundedBlocks - 1) / kBoundedBlocks);
    launch(stream, {.x = cache.num_kv_heads, .y = args.num_seqs, .threads = kBoundsThreads},
           choose_blocks_kernel<kWave>, described);
  });
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
