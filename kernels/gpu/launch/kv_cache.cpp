#include "kernels/gpu/kv/int8.hip.hpp"

#include "kernels/gpu/launch/cache_type.hpp"
#include "kernels/gpu/launch/start.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {
namespace {

void require_wide_cache(const KvCacheView& cache) {
  if (cache.head_dim % kWide != 0)
    throw InputError("a KV cache of head_dim " + std::to_string(cache.head_dim) +
                     " has no GPU kernel; there is one for multiples of " + std::to_string(kWide));
  require_aligned_cache(cache);
}

void require_wide_rows(const ReshapeAndCache& args) {
  require_aligned("K", args.k.data);
  require_aligned("V", args.v.data);
  if (args.kv_stride % kWide != 0)
    throw InputError("the tokens of K and V must lie multiples of " + std::to_string(kWide) +
                     " values apart (here: " + std::to_string(args.kv_stride) + ")");
}

}  // namespace

void start(Stream& stream, const ReshapeAndCache& args) {
  require_wide_cache(args.cache);
  require_wide_rows(args);
  require_weight("K", args.k.dtype);
  require_weight("V", args.v.dtype);
  if (args.head_slots.of_tokens != nullptr && args.skip_set != nullptr)
    throw InputError("a KV cache whose heads have slots of their own has no GPU kernel for a skip set");
  const int threads = kv_cache_threads(args.cache.num_kv_heads, args.cache.head_dim);
  if (args.cache.dtype == Dtype::int8)
    return with_wave_size(stream, [&]<int kWave>() {
      launch(stream, {.x = args.num_tokens, .threads = threads}, cache_int8_kernel<kWave>,
             CacheInt8Launch{args, int8_head_lanes(args.cache)});
    });
  with_cache_type(args.cache.dtype, [&]<typename Stored>() {
    const auto kernel =
        args.head_slots.of_tokens == nullptr ? reshape_and_cache_kernel<Stored> : cache_by_head_kernel<Stored>;
    launch(stream, {.x = args.num_tokens, .threads = threads}, kernel, args);
  });
}

template <typename Bytes>
void start_copies(Stream& stream, const CopyBlocks& args) {
  constexpr std::int64_t kBytesPerWorkgroup = kKvCacheThreads * sizeof(Bytes);
  const auto parts = static_cast<int>((args.block_bytes + kBytesPerWorkgroup - 1) / kBytesPerWorkgroup);
  launch(stream, {.x = args.num_pairs, .y = parts, .threads = kKvCacheThreads}, copy_blocks_kernel<Bytes>, args);
}

void start(Stream& stream, const CopyBlocks& args) {
  if (args.block_bytes % static_cast<std::int64_t>(sizeof(float)) != 0)
    throw InputError("blocks of " + std::to_string(args.block_bytes) +
                     " bytes cannot be copied by the GPU; multiples of 4 bytes can");
  require_aligned("the source of copied blocks", args.source);
  require_aligned("the destination of copied blocks", args.destination);
  if (args.block_bytes % static_cast<std::int64_t>(sizeof(BlockBytes)) == 0)
    start_copies<BlockBytes>(stream, args);
  else
    start_copies<float>(stream, args);  // an int8 cache's scales
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
