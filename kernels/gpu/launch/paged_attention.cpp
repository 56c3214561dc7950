#include <bit>
#include <string>

#include "kernels/gpu/attention/paged_attention.hip.hpp"
#include "kernels/gpu/attention/paged_attention_combine.hip.hpp"
#include "kernels/gpu/launch/cache_type.hpp"
#include "kernels/gpu/launch/start.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {
namespace {

void require(bool holds, const std::string& what, int given, const std::string& supported) {
  if (holds) return;
  std::string message = "decode attention on the GPU: ";
  message.append(what).append(" ").append(std::to_string(given)).append(" is not supported; use ").append(supported);
  throw InputError(message);
}

void check(const PagedAttention& args) {
  const KvCacheView& cache = args.cache;
  require_dtype("the query of decode attention", args.q.dtype, {Dtype::f32, Dtype::f16});
  require_dtype("the result of decode attention", args.out.dtype, {Dtype::f32, Dtype::f16});
  require(cache.head_dim >= 32 && cache.head_dim <= kPagedAttentionMaxHeadDim && cache.head_dim % 16 == 0, "head size",
          cache.head_dim, "a multiple of 16 from 32 to 256");
  require(
      cache.block_size >= 1 && cache.block_size <= 256 && std::has_single_bit(static_cast<unsigned>(cache.block_size)),
      "block size", cache.block_size, "a power of two from 1 to 256");
  require(args.num_heads % cache.num_kv_heads == 0, "number of query heads", args.num_heads,
          std::string("a multiple of ") + std::to_string(cache.num_kv_heads) + ", the KV heads");
  const int group_size = args.num_heads / cache.num_kv_heads;
  require(
      args.heads_per_workgroup >= 0 && (args.heads_per_workgroup == 0 || group_size % args.heads_per_workgroup == 0),
      "heads_per_workgroup", args.heads_per_workgroup,
      std::string("0 or a divisor of ") + std::to_string(group_size) + ", the group size");
  require(args.partition_tokens >= 0, "partition_tokens", args.partition_tokens, "0 or more");
  require_aligned("the query of decode attention", args.q.data);
  require_aligned_cache(cache);
  require_aligned("the result of decode attention", args.out.data);
  require_aligned("the workspace of decode attention", args.workspace);
  const int alignment = 128 / bits(args.q.dtype);
  require(args.q_stride % alignment == 0, "q_stride", static_cast<int>(args.q_stride),
          std::string("a multiple of ") + std::to_string(alignment));
}

// As many rows of a sequence and KV head as a workgroup can serve, or as there are; then in equal tiles.
template <int kWave, typename Cache, int kTokenLanes>
void start_several_tokens(Stream& stream, PagedAttentionLaunch described) {
  constexpr int kRowsOfLane = kPagedAttentionLaneSums / (16 / static_cast<int>(sizeof(Cache)));
  using Tile = SeveralTokensTile<kWave, Cache, kTokenLanes, kRowsOfLane>;
  const PagedAttention& args = described.args;
  const int rows = args.queries.max_tokens_per_seq * args.num_heads / args.cache.num_kv_heads;
  described.row_tiles = ceiling_quotient(rows, Tile::kGroups * kRowsOfLane);
  described.heads = ceiling_quotient(rows, described.row_tiles);
  described.team = std::bit_ceil(static_cast<unsigned>(ceiling_quotient(described.heads, kRowsOfLane)));
  launch(stream,
         {.x = args.cache.num_kv_heads * described.row_tiles,
          .y = args.num_seqs,
          .z = described.partitions,
          .threads = kPagedAttentionThreads},
         paged_attention_kernel<Tile>, described);
  if (described.partitions > 1) start(stream, described);
}

template <int kWave, typename Cache, int kTokenLanes, int kHeads, LaneTeam kTeam>
void start_tile(Stream& stream, const PagedAttentionLaunch& described) {
  using Tile = PagedAttentionTile<kWave, Cache, kTokenLanes, kHeads, kTeam>;
  const PagedAttention& args = described.args;
  require(described.team <= Tile::kGroups, "heads_per_workgroup", described.heads,
          std::string("at most ") + std::to_string(Tile::kGroups * kHeads) + " with this head size");
  launch(stream,
         {.x = args.num_heads / described.heads,
          .y = args.num_seqs,
          .z = described.partitions,
          .threads = kPagedAttentionThreads},
         paged_attention_kernel<Tile>, described);
  if (described.partitions > 1) start(stream, described);
}

template <int kWave, typename Cache, int kTokenLanes>
void start_heads_of_lane(Stream& stream, const PagedAttentionLaunch& described, int lane_heads) {
  constexpr int kMost = kPagedAttentionLaneSums / (16 / static_cast<int>(sizeof(Cache)));
  if (described.args.queries.start_loc != nullptr)
    return start_several_tokens<kWave, Cache, kTokenLanes>(stream, described);
  if (described.team > 1) return start_tile<kWave, Cache, kTokenLanes, kMost, LaneTeam::shared>(stream, described);
  if (lane_heads == 1) return start_tile<kWave, Cache, kTokenLanes, 1, LaneTeam::alone>(stream, described);
  if (lane_heads == 2) return start_tile<kWave, Cache, kTokenLanes, 2, LaneTeam::alone>(stream, described);
  if constexpr (kMost == 4) start_tile<kWave, Cache, kTokenLanes, 4, LaneTeam::alone>(stream, described);
}

template <int kWave, typename Cache>
void start_token_lanes(Stream& stream, const PagedAttentionLaunch& described, const PagedAttentionTiling& tiling) {
  constexpr int kFewest = 32 * static_cast<int>(sizeof(Cache)) / 16;  // of head size 32
  if (tiling.token_lanes == kFewest) start_heads_of_lane<kWave, Cache, kFewest>(stream, described, tiling.lane_heads);
  if (tiling.token_lanes == 2 * kFewest)
    start_heads_of_lane<kWave, Cache, 2 * kFewest>(stream, described, tiling.lane_heads);
  if (tiling.token_lanes == 4 * kFewest)
    start_heads_of_lane<kWave, Cache, 4 * kFewest>(stream, described, tiling.lane_heads);
  if (tiling.token_lanes == 8 * kFewest)
    start_heads_of_lane<kWave, Cache, 8 * kFewest>(stream, described, tiling.lane_heads);
}

}  // namespace

void start(Stream& stream, const PagedAttentionLaunch& partitions) {
  with_wave_size(stream, [&]<int kWave>() {
    launch(stream,
           {.x = partitions.args.num_heads,
            .y = partitions.args.num_seqs,
            .z = partitions.args.queries.max_tokens_per_seq,
            .threads = kCombineThreads},
           paged_attention_combine_kernel<kWave>, partitions);
  });
}

void start(Stream& stream, const PagedAttention& args) {
  check(args);
  PagedAttentionLaunch described{.args = args};
  if (args.queries.start_loc == nullptr) described.args.queries = {.num_tokens = args.num_seqs};
  described.heads = args.heads_per_workgroup > 0 ? args.heads_per_workgroup : args.num_heads / args.cache.num_kv_heads;
  described.partitions = paged_attention_partitions(args.max_context_len, args.partition_tokens);
  if (described.partitions > 1 && args.workspace == nullptr)
    throw InputError("decode attention on the GPU: two passes need a workspace; see paged_attention_workspace()");
  described.block_shift = std::countr_zero(static_cast<unsigned>(args.cache.block_size));
  const bool is_scaled = args.cache.dtype == Dtype::fp8_e4m3 || args.cache.dtype == Dtype::fp8_e5m2;
  const Fp8KvScales scales = is_scaled ? args.cache.extras.as<Fp8KvScales>() : Fp8KvScales();
  described.score_scale = args.scale * scales.k;
  described.output_scale = scales.v;
  if (is_kivi(args.cache.dtype)) return start_kivi(stream, described);
  with_cached_type(args.cache.dtype, [&]<typename Cache>() {
    const PagedAttentionTiling tiling = tile_paged_attention(args.cache.dtype, args.cache.head_dim, described.heads);
    described.team = tiling.team;
    with_wave_size(stream, [&]<int kWave>() { start_token_lanes<kWave, Cache>(stream, described, tiling); });
  });
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
