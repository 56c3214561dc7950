// Which rows of queries a workgroup of prefill attention has, and what they attend to.
#pragma once

#include "kernels/gpu/attention/prefill_tiles.hip.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// The rows of one sequence and KV head, of which a workgroup has a tile.
struct QueryRows {
  int first_token;     // of the sequence in the launch
  int first_position;  // of that token in the sequence
  int group, kv_head;
  int first, count;  // of the tile; of the sequence: tokens x group

  [[nodiscard]] __device__ bool has(int row) const { return first + row < count; }
  [[nodiscard]] __device__ std::int64_t token(int row) const { return first_token + (first + row) / group; }
  [[nodiscard]] __device__ int head(int row) const { return kv_head * group + (first + row) % group; }
  [[nodiscard]] __device__ int position(int row) const { return first_position + (first + row) / group; }
};

// query_dim: values of a head, multiples of 8; those that the tiles have more are zeros.
template <typename Tiles>
__device__ __forceinline__ void load_queries(const PrefillAttention& args, const QueryRows& rows, int query_dim,
                                             Tiles& tiles) {
  using Word = typename Tiles::Value;
  constexpr int kParts = Tiles::kQueryDim / 8, kWords = 8 / kValuesPerWord<Word>;
  for (int i = thread_index(); i < tiles.kTile.rows * kParts; i += kPrefillThreads) {
    const int row = i / kParts, part = i % kParts;
    Numbers<8> numbers{};
    if (rows.has(row) && part * 8 < query_dim) {
      const std::int64_t place = rows.token(row) * args.q_stride + rows.head(row) * query_dim + part * 8;
      numbers = load_numbers<8>(args.q.data, args.q.dtype, place);
    }
    Word words[kWords];
    DCULAB_UNROLL
    for (int w = 0; w < kWords; ++w) {
      if constexpr (kValuesPerWord<Word> == 2)
        words[w] = pair_of(from_float<Half>(numbers[2 * w]), from_float<Half>(numbers[2 * w + 1]));
      else
        words[w] = numbers[w];
    }
    store_words(&tiles.queries[row][part * kWords], words);
  }
  if (const int row = thread_index(); row < tiles.kTile.rows) {
    const bool has_slope = rows.has(row) && args.alibi_slopes != nullptr;
    tiles.rows[row] = {rows.has(row) ? rows.position(row) : kNoPosition,
                       has_slope ? load(args.alibi_slopes + rows.head(row)) : 0.0F};
  }
}

// What a row of a tile sees of the tokens: `distance` from its own, in its window.
struct CausalSight {
  int window;
  [[nodiscard]] __device__ __forceinline__ bool operator()(int distance, const QueryRow& /*row*/) const {
    return distance <= 0 && distance > -window;
  }
};

// What a workgroup attends to.
struct Attended {
  QueryRows rows;
  KvSequence sequence;
  int window, first;  // tokens that a query sees; the first that any does
  float scale;
};

__device__ __forceinline__ Attended attended_by_workgroup(const PrefillAttention& args, int tile_rows) {
  const int seq = workgroup_z(), kv_head = workgroup_y(), group = args.num_heads / args.cache.num_kv_heads;
  const int first_token = load(args.query_start_loc + seq);
  const int query_len = load(args.query_start_loc + seq + 1) - first_token, context_len = load(args.context_lens + seq);
  const int first_row = (workgroups_x() - 1 - workgroup_x()) * tile_rows;
  const QueryRows rows{first_token, context_len - query_len, group, kv_head, first_row, query_len * group};
  const int last_row = smaller(rows.count - first_row, tile_rows) - 1;
  const KvSequence sequence{args.cache, args.block_tables + static_cast<std::int64_t>(seq) * args.max_blocks_per_seq,
                            kv_head, rows.position(last_row) + 1};
  const int window = args.sliding_window == 0 ? context_len : args.sliding_window;
  const int first_visible = rows.position(0) + 1 - window;
  return {rows, sequence, window, first_visible > 0 ? first_visible : 0, args.scale * k_scale_of(args.cache)};
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
