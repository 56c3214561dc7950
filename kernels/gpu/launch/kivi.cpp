#include "kernels/gpu/kv/kivi.hip.hpp"

#include <bit>

#include "kernels/gpu/kv/kivi_attention.hip.hpp"
#include "kernels/gpu/launch/cache_type.hpp"
#include "kernels/gpu/launch/dispatch.hpp"
#include "kernels/gpu/launch/kivi.hpp"
#include "kernels/gpu/launch/start.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {
namespace {

void require_supported(const KiviTokens& args) {
  require_kivi_cache(args.cache);
  require_activation("K and V of new tokens", args.cache.extras.as<KiviOnDevice>().new_dtype);
}

template <typename Tile>
void start_tile(Stream& stream, const KiviAttentionLaunch& launched, int query_heads) {
  const PagedAttentionLaunch& described = launched.decode;
  const PagedAttention& args = described.args;
  launch(stream,
         {.x = args.num_heads / query_heads * launched.parts,
          .y = args.num_seqs,
          .z = described.partitions,
          .threads = kPagedAttentionThreads},
         kivi_attention_kernel<Tile>, launched);
  if (described.partitions > 1) start(stream, described);
}

template <int kWave, int kBits>
void start_bits(Stream& stream, PagedAttentionLaunch described) {
  const PagedAttention& args = described.args;
  const int query_heads = described.heads;
  const KiviTiling tiling = tile_kivi_attention(args.cache.dtype, args.cache.head_dim, query_heads);
  described.heads = tiling.heads;
  const KiviAttentionLaunch launched{described, tiling.parts};
  constexpr int kFewest = kBits;  // lanes of a token, of head size 32
  with_count<kFewest, 2 * kFewest, 4 * kFewest, 8 * kFewest>(tiling.token_lanes, [&]<int kTokenLanes>() {
    const auto with_heads = [&]<int kHeads>() {
      start_tile<KiviTile<kWave, kBits, kTokenLanes, kHeads>>(stream, launched, query_heads);
    };
    if constexpr (kBits == 4)
      with_count<1, 2, 4>(tiling.lane_heads, with_heads);
    else
      with_count<1, 2>(tiling.lane_heads, with_heads);
  });
}

}  // namespace

void start_quantize_groups(Stream& stream, const KiviTokens& args) {
  require_supported(args);
  const KvCacheView& cache = args.cache;
  const LaunchShape shape{
      .x = args.most, .y = cache.num_kv_heads, .z = args.num_seqs, .threads = kivi_group_threads(cache.head_dim)};
  with_wave_size(stream, [&]<int kWave>() {
    with_count<4, 2>(bits(cache.dtype),
                     [&]<int kBits>() { launch(stream, shape, quantize_groups_kernel<kWave, kBits>, args); });
  });
}

void start_keep_residual(Stream& stream, const KiviTokens& args) {
  require_supported(args);
  const int threads = kv_cache_threads(args.cache.num_kv_heads, args.cache.head_dim);
  with_wave_size(stream, [&]<int kWave>() {
    launch(stream, {.x = args.most, .y = args.num_seqs, .threads = threads}, keep_residual_kernel<kWave>, args);
  });
}

void start_kivi(Stream& stream, const PagedAttentionLaunch& described) {
  require_kivi_cache(described.args.cache);
  if (described.args.queries.start_loc != nullptr)
    throw InputError("decode attention on the GPU: several new tokens of a sequence have no kernel with a KIVI cache");
  with_wave_size(stream, [&]<int kWave>() {
    with_count<4, 2>(bits(described.args.cache.dtype),
                     [&]<int kBits>() { start_bits<kWave, kBits>(stream, described); });
  });
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
