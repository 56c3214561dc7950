// Attention over the latents of MLA: all query heads share one KV head, whose values are the first part of its keys.
//
// All heads use each latent, so multiplication takes the time, not memory. A workgroup has a tile of query rows (token
// and head) in shared memory and brings in tiles of latents as they are stored, which it multiplies twice: for scores a
// lane has 4 rows x 4 tokens of a slice of the width, for outputs two columns of every row.
#pragma once

#include "kernels/gpu/attention/cached_chunk.hpp"
#include "kernels/gpu/attention/paged_attention_heads.hpp"
#include "kernels/gpu/kv_cache/paged_kv.hpp"
#include "kernels/gpu/latent_args.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

struct LatentAttentionLaunch {
  LatentAttention args;
  int partitions = 1;
  float score_scale = 1;   // of q * stored latent
  float output_scale = 1;  // of the stored latent
};

template <int kWaveSize, typename CacheType>
struct LatentTile {
  using Cache = CacheType;
  using Pair = typename CachedNumbers<Cache>::Pair;
  static constexpr int kWave = kWaveSize;
  static constexpr int kRows = sizeof(Pair) == sizeof(FloatPair) ? latent_rows(Dtype::bf16) : latent_rows(Dtype::f16);
  static constexpr int kValues = 16 / sizeof(Cache);  // of a chunk
  static constexpr int kChunks = kMostLatentWidth / kValues;
  static constexpr int kSide = 4;  // rows and tokens of a lane's scores
  static constexpr int kSlices = kLatentThreads / (kRows / kSide * kLatentTokens / kSide);
  static constexpr int kTokenLanes = kLatentThreads / kLatentTokens;  // that load a latent
  static constexpr int kFetched = (kChunks + kTokenLanes - 1) / kTokenLanes;
  static_assert(kSlices <= kWave && kSide * kSide <= kSlices && kLatentTokens == kTokenLanes);
};

// Rows of latents are 16 bytes longer than their contents: lanes that read neighbouring tokens meet other banks.
template <typename Tile>
struct LatentShared {
  typename Tile::Pair queries[Tile::kRows][Tile::kChunks][Tile::kValues / 2];
  CachedChunk latents[kLatentTokens][Tile::kChunks + 1];
  alignas(16) float weights[kLatentTokens][Tile::kRows];  // scores, then weights of the softmax
  alignas(16) float factors[Tile::kRows];                 // of what the outputs have been summed to
  float largest[Tile::kRows], totals[Tile::kRows];        // at the end
};

// Workgroups that a compute unit of gfx906, with 64 KB of shared memory, is to hold: what registers are limited for.
template <typename Tile>
inline constexpr int kLatentWorkgroups = sizeof(LatentShared<Tile>) <= 32 * 1024 ? 2 : 1;

// What the workgroup works on.
struct LatentPlace {
  int seq, partition;
  int first_row, rows;  // of the sequence's new tokens x heads
  NewTokens tokens;     // of the sequence
  int begin, end;       // tokens that any row sees

  [[nodiscard]] __device__ bool has(int row) const { return first_row + row < rows; }
};

template <typename Tile>
__device__ __forceinline__ LatentPlace find_latent_place(const LatentAttentionLaunch& launch) {
  const LatentAttention& args = launch.args;
  LatentPlace place;
  place.seq = workgroup_y();
  place.partition = workgroup_z();
  const int heads = args.sizes.num_heads, context = load(args.context_lens + place.seq);
  place.tokens = new_tokens_of(args.queries, place.seq, context);
  place.first_row = (workgroups_x() - 1 - workgroup_x()) * Tile::kRows;  // the longest contexts first
  place.rows = place.tokens.count * heads;
  const int last_row = smaller(place.first_row + Tile::kRows, place.rows) - 1;
  place.begin = 0;
  place.end = place.tokens.tree_begin < 0 ? place.tokens.computed + last_row / heads + 1 : context;
  if (launch.partitions > 1) {  // the second pass takes all of the sequence's partitions for written
    place.begin = place.partition * args.partition_tokens;
    place.end = smaller(context, place.begin + args.partition_tokens);
  }
  return place;
}

template <typename Tile>
__device__ __forceinline__ void load_latent_queries(const LatentAttention& args, const LatentPlace& place,
                                                    LatentShared<Tile>& shared) {
  const int width = args.sizes.latent_width(), chunks = width / Tile::kValues;
  for (int i = thread_index(); i < Tile::kRows * chunks; i += kLatentThreads) {
    const int row = i / chunks, chunk = i % chunks;
    Numbers<Tile::kValues> query{};
    if (place.has(row)) {
      const std::int64_t from =
          static_cast<std::int64_t>(place.tokens.first) * args.sizes.num_heads + place.first_row + row;
      query = load_numbers<Tile::kValues>(args.q.data, args.q.dtype, from * width + chunk * Tile::kValues);
    }
    DCULAB_UNROLL
    for (int j = 0; j < Tile::kValues; j += 2) set_pair(shared.queries[row][chunk][j / 2], query[j], query[j + 1]);
  }
}

// A tile of latents on its way from the cache to shared memory: 16 lanes have a token.
template <typename Tile>
class LatentCourier {
 public:
  __device__ __forceinline__ LatentCourier(const LatentAttention& args, const LatentPlace& place)
      : cache_(args.cache),
        table_(args.block_tables + static_cast<std::int64_t>(place.seq) * args.max_blocks_per_seq),
        end_(place.end),
        chunks_(args.sizes.latent_width() / Tile::kValues) {
    look_up(place.begin);
    fetch(place.begin);
  }

  // The tile from `first` on, whose block was looked up a tile before; of tokens beyond the end zeros.
  __device__ __forceinline__ void fetch(int first) {
    using Cache = typename Tile::Cache;
    const int token = first + own_token();
    const std::int64_t row = cache_row(cache_, block_, 0, token % cache_.block_size);
    const auto* from = reinterpret_cast<const CachedChunk*>(static_cast<const Cache*>(cache_.k) + row);
    DCULAB_UNROLL
    for (int i = 0; i < Tile::kFetched; ++i) {
      fetched_[i] = CachedChunk{};
      if (token < end_ && chunk(i) < chunks_) fetched_[i] = load(from + chunk(i));
    }
    look_up(first + kLatentTokens);
  }

  __device__ __forceinline__ void put(LatentShared<Tile>& shared) const {
    DCULAB_UNROLL
    for (int i = 0; i < Tile::kFetched; ++i)
      if (chunk(i) < Tile::kChunks) shared.latents[own_token()][chunk(i)] = fetched_[i];
  }

 private:
  __device__ __forceinline__ static int own_token() { return thread_index() / Tile::kTokenLanes; }
  __device__ __forceinline__ static int chunk(int i) {
    return thread_index() % Tile::kTokenLanes + i * Tile::kTokenLanes;
  }
  __device__ __forceinline__ void look_up(int first) {
    const int token = first + own_token();
    block_ = token < end_ ? load(table_ + token / cache_.block_size) : 0;
  }

  const KvCacheView& cache_;
  const std::int32_t* table_;
  int end_, chunks_;
  std::int32_t block_ = 0;
  CachedChunk fetched_[Tile::kFetched];
};

// Raw scores of the tile, [token, row], to shared memory.
template <typename Tile>
__device__ __forceinline__ void score_latents(int chunks, LatentShared<Tile>& shared) {
  using Pair = typename Tile::Pair;
  constexpr int kSide = Tile::kSide;
  const int slice = thread_index() % Tile::kSlices, part = thread_index() / Tile::kSlices;
  const int row = part % (Tile::kRows / kSide) * kSide, token = part / (Tile::kRows / kSide) * kSide;
  float scores[kSide * kSide] = {};
  for (int chunk = slice; chunk < chunks; chunk += Tile::kSlices) {
    CachedChunk keys[kSide];
    DCULAB_UNROLL
    for (int t = 0; t < kSide; ++t) keys[t] = shared.latents[token + t][chunk];
    DCULAB_UNROLL
    for (int i = 0; i < Tile::kValues / 2; ++i) {
      Pair pairs[kSide];
      DCULAB_UNROLL
      for (int t = 0; t < kSide; ++t) pairs[t] = CachedNumbers<typename Tile::Cache>::pair(keys[t], i);
      DCULAB_UNROLL
      for (int r = 0; r < kSide; ++r) {
        const Pair query = shared.queries[row + r][chunk][i];
        DCULAB_UNROLL
        for (int t = 0; t < kSide; ++t) scores[t * kSide + r] = dot2(query, pairs[t], scores[t * kSide + r]);
      }
      keep_order();
    }
  }
  wave_transpose_sum<Tile::kWave, kSide * kSide, Tile::kSlices>(scores);
  if (slice < kSide * kSide) shared.weights[token + slice / kSide][row + slice % kSide] = scores[0];
}

// The softmax of one row, as far as the tiles have come. 16 lanes have a row, each a token of the tile.
struct LatentSoftmax {
  float largest = kNoScore, total = 0;  // the same in all lanes of the row; of this lane's tokens
  QuerySight sight;                     // of the row's token
};

template <typename Tile>
__device__ __forceinline__ LatentSoftmax start_softmax(const LatentAttention& args, const LatentPlace& place) {
  const int row = thread_index() / kLatentTokens;
  LatentSoftmax softmax;
  softmax.sight = {0, 0, 0};
  if (row < Tile::kRows && place.has(row))
    softmax.sight = sight_of(args.queries, place.tokens, (place.first_row + row) / args.sizes.num_heads);
  return softmax;
}

template <typename Tile>
__device__ __forceinline__ void weigh_latents(const LatentAttentionLaunch& launch, const LatentPlace& place, int first,
                                              LatentSoftmax& softmax, LatentShared<Tile>& shared) {
  const int lane_row = thread_index() / kLatentTokens, place_in_tile = thread_index() % kLatentTokens;
  const bool has_row = lane_row < Tile::kRows;
  const int row = has_row ? lane_row : 0, token = first + place_in_tile;
  const int distance = distance_to(softmax.sight, token);
  const bool is_seen = has_row && place.has(row) && token < place.end && distance <= 0;
  float score = 0;
  if (has_row) score = shared.weights[place_in_tile][row];  // others would read what the lanes of row 0 write below
  score = choose(is_seen, score * launch.score_scale, kMaskedScore);
  const float raised = larger(softmax.largest, wave_max<Tile::kWave, kLatentTokens>(score));
  const float factor = fast_exp(softmax.largest - raised), weight = fast_exp(score - raised);
  softmax.total = softmax.total * factor + weight;
  softmax.largest = raised;
  if (!has_row) return;
  shared.weights[place_in_tile][row] = weight;
  if (place_in_tile == 0) shared.factors[row] = factor;
}

// outputs += weights * values, of the two columns of this lane.
template <typename Tile>
__device__ __forceinline__ void add_latents(const LatentShared<Tile>& shared, float (&outputs)[Tile::kRows][2]) {
  constexpr int kWordLanes = 4 / sizeof(typename Tile::Cache) / 2;  // lanes whose values share a word
  const int word = thread_index() / kWordLanes, half = thread_index() % kWordLanes;
  DCULAB_UNROLL
  for (int r = 0; r < Tile::kRows; ++r) {
    outputs[r][0] *= shared.factors[r];
    outputs[r][1] *= shared.factors[r];
  }
  for (int token = 0; token < kLatentTokens; ++token) {
    const auto pair =
        CachedNumbers<typename Tile::Cache>::pair_of_word(shared.latents[token][word / 4].values[word % 4], half);
    const float low = low_of(pair), high = high_of(pair);
    DCULAB_UNROLL
    for (int r = 0; r < Tile::kRows; ++r) {
      outputs[r][0] = fused_multiply_add(shared.weights[token][r], low, outputs[r][0]);
      outputs[r][1] = fused_multiply_add(shared.weights[token][r], high, outputs[r][1]);
    }
  }
}

// The results of the rows, or a partition's share of them for paged_attention_combine_kernel.
template <typename Tile>
__device__ __forceinline__ void store_latent_outputs(const LatentAttentionLaunch& launch, const LatentPlace& place,
                                                     const LatentShared<Tile>& shared,
                                                     const float (&outputs)[Tile::kRows][2]) {
  const LatentAttention& args = launch.args;
  const int rank = args.sizes.kv_lora_rank, column = 2 * thread_index();
  const std::int64_t heads = args.sizes.num_heads, first_row = place.tokens.first * heads + place.first_row;
  const std::int64_t parts = args.queries.num_tokens * heads * launch.partitions;
  DCULAB_UNROLL
  for (int r = 0; r < Tile::kRows; ++r) {
    if (!place.has(r) || column >= rank) continue;
    Numbers<2> numbers{{outputs[r][0], outputs[r][1]}};
    if (launch.partitions == 1) {
      const float factor = launch.output_scale / shared.totals[r];
      numbers[0] *= factor, numbers[1] *= factor;
      store_numbers<2>(args.out.data, args.out.dtype, (first_row + r) * rank + column, numbers);
      continue;
    }
    const std::int64_t part = (first_row + r) * launch.partitions + place.partition;
    store_packed<2, float>(args.workspace, part * rank + column, numbers);
    if (column != 0) continue;
    store(args.workspace + parts * rank + part, shared.largest[r]);
    store(args.workspace + parts * (rank + 1) + part, shared.totals[r]);
  }
}

// Grid: tiles of query rows, sequences, partitions of the context.
template <int kWave, typename Cache>
__global__ void __launch_bounds__(kLatentThreads, (kLatentWorkgroups<LatentTile<kWave, Cache>>))
    latent_attention_kernel(LatentAttentionLaunch launch) {
  using Tile = LatentTile<kWave, Cache>;
  DCULAB_SHARED(LatentShared<Tile>, shared);
  const LatentPlace place = find_latent_place<Tile>(launch);
  if (!place.has(0) || place.begin >= place.end) return;
  const int chunks = launch.args.sizes.latent_width() / Tile::kValues;
  LatentCourier<Tile> courier(launch.args, place);
  load_latent_queries<Tile>(launch.args, place, shared);
  LatentSoftmax softmax = start_softmax<Tile>(launch.args, place);
  float outputs[Tile::kRows][2] = {};
  for (int first = place.begin; first < place.end; first += kLatentTokens) {
    barrier();
    courier.put(shared);
    barrier();
    courier.fetch(first + kLatentTokens);  // arrives while this tile is multiplied
    score_latents<Tile>(chunks, shared);
    barrier();
    weigh_latents<Tile>(launch, place, first, softmax, shared);
    barrier();
    add_latents<Tile>(shared, outputs);
  }
  const float total = wave_sum<kWave, kLatentTokens>(softmax.total);
  if (const int row = thread_index() / kLatentTokens; row < Tile::kRows && thread_index() % kLatentTokens == 0) {
    shared.largest[row] = softmax.largest;
    shared.totals[row] = total;
  }
  barrier();
  store_latent_outputs<Tile>(launch, place, shared, outputs);
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
