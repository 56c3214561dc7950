// H2O: what each cached token gets of the new tokens' attention is added up, and the token with the least of it is
// chosen to go. One workgroup for each sequence and KV head, new tokens one after the other.
#pragma once

#include "kernels/gpu/attention/cached_chunk.hpp"
#include "kernels/gpu/attention/scores.hpp"
#include "kernels/gpu/kv/heavy_hitters.hpp"
#include "kernels/gpu/kv_cache/paged_kv.hpp"
#include "kernels/gpu/layers/rows.hpp"
#include "kernels/gpu/wave.hpp"
#include "lower/dculab_gpu/attention_scores_tiling.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

struct AttentionScoresLaunch {
  AttentionScores args;
  int row_lanes = 1;      // of a wave, that share a key
  float score_scale = 1;  // of q * stored k
};

struct LeastToken {
  float sum;
  std::int32_t position, place;
};

template <int kHeads>
struct AttentionScoresShared {
  static constexpr int kChunk = kHeldScores / kHeads;  // tokens whose scores are held
  float scores[kHeads][kChunk];
  float largest[kHeads], total[kHeads];  // of the chunks so far: e^(score - largest) summed up
  LeastToken least[kScoresThreads / 32];
};

// What a workgroup works on.
struct ScoredKeys {
  int seq, kv_head, group_size;
  const std::int32_t* table;
  float* sums;
};

template <typename Cache, int kHeads>
struct ScoringQueries {
  static constexpr int kValues = 16 / sizeof(Cache);  // of a lane
  typename CachedNumbers<Cache>::Pair heads[kHeads][kValues / 2];
};

// Those of heads [first, first + kHeads) of the group; zeros beyond its end.
template <typename Cache, int kHeads>
__device__ __forceinline__ ScoringQueries<Cache, kHeads> load_scoring_queries(const AttentionScoresLaunch& launch,
                                                                              const ScoredKeys& keys, int token,
                                                                              int first) {
  using Queries = ScoringQueries<Cache, kHeads>;
  const AttentionScores& args = launch.args;
  const int value = thread_index() % launch.row_lanes * Queries::kValues;
  Queries queries;
  DCULAB_UNROLL
  for (int h = 0; h < kHeads; ++h) {
    Numbers<Queries::kValues> query{};
    const std::int64_t head = keys.kv_head * keys.group_size + first + h;
    if (first + h < keys.group_size && value < args.cache.head_dim)
      query = load_numbers<Queries::kValues>(args.q.data, args.q.dtype,
                                             token * args.q_stride + head * args.cache.head_dim + value);
    DCULAB_UNROLL
    for (int i = 0; i < Queries::kValues; i += 2) set_pair(queries.heads[h][i / 2], query[i], query[i + 1]);
  }
  return queries;
}

inline constexpr int kScoredRows = 4;  // keys whose loads a lane has under way

// shared.scores of places [begin, end). A barrier after it.
template <int kWave, typename Cache, int kHeads>
__device__ __forceinline__ void score_chunk(const AttentionScoresLaunch& launch, const ScoredKeys& keys,
                                            const ScoringQueries<Cache, kHeads>& queries, int begin, int end,
                                            AttentionScoresShared<kHeads>& shared) {
  using Numbers = CachedNumbers<Cache>;
  constexpr int kValues = ScoringQueries<Cache, kHeads>::kValues;
  const KvCacheView& cache = launch.args.cache;
  const int lane = thread_index() % launch.row_lanes, value = lane * kValues;
  const int rows = kScoresThreads / launch.row_lanes;  // of the workgroup, at a time
  for (int step = begin; step < end; step += rows * kScoredRows) {
    CachedChunk chunks[kScoredRows]{};
    [[maybe_unused]] float scales[kScoredRows]{};
    DCULAB_UNROLL
    for (int row = 0; row < kScoredRows; ++row) {
      const int place = step + row * rows + thread_index() / launch.row_lanes;
      if (place >= end || value >= cache.head_dim) continue;
      const std::int64_t token = row_of_token(cache, keys.table, keys.kv_head, place);
      const Cache* const key = static_cast<const Cache*>(cache.k) + token * cache.head_dim + value;
      chunks[row] = load(reinterpret_cast<const CachedChunk*>(key));
      if constexpr (kHasTokenScales<Cache>) scales[row] = load(cache.extras.as<Int8KvScales>().k + token);
    }
    DCULAB_UNROLL
    for (int row = 0; row < kScoredRows; ++row) {
      const int place = step + row * rows + thread_index() / launch.row_lanes;
      float scores[kHeads];
      DCULAB_UNROLL
      for (int h = 0; h < kHeads; ++h) scores[h] = 0;
      DCULAB_UNROLL
      for (int i = 0; i < kValues / 2; ++i) {
        const auto pair = Numbers::pair(chunks[row], i);
        DCULAB_UNROLL
        for (int h = 0; h < kHeads; ++h) scores[h] = dot2(queries.heads[h][i], pair, scores[h]);
      }
      DCULAB_UNROLL
      for (int h = 0; h < kHeads; ++h) {
        for (int mask = 1; mask < launch.row_lanes; mask *= 2) scores[h] += shuffle_xor<kWave>(scores[h], mask);
        if constexpr (kHasTokenScales<Cache>) scores[h] *= scales[row];
        if (lane == 0 && place < end) shared.scores[h][place - begin] = scores[h] * launch.score_scale;
      }
    }
  }
  barrier();
}

// Takes `count` scores into largest and total, one head after the other for each wave. A barrier after it.
template <int kWave, int kHeads>
__device__ __forceinline__ void take_in(int count, AttentionScoresShared<kHeads>& shared) {
  const int lane = lane_index<kWave>();
  for (int h = wave_index<kWave>(); h < kHeads; h += kScoresThreads / kWave) {
    const float before = shared.largest[h], total_before = shared.total[h];
    float largest = kNoScore;
    for (int i = lane; i < count; i += kWave) largest = larger(shared.scores[h][i], largest);
    largest = larger(wave_max<kWave>(largest), before);
    float total = 0;
    for (int i = lane; i < count; i += kWave) total += fast_exp(shared.scores[h][i] - largest);
    total = wave_sum<kWave>(total) + total_before * fast_exp(before - largest);
    if (lane == 0) {
      shared.largest[h] = largest;
      shared.total[h] = total;
    }
  }
  barrier();
}

template <int kHeads>
__device__ __forceinline__ void add_to_sums(const ScoredKeys& keys, int heads, int begin, int count,
                                            AttentionScoresShared<kHeads>& shared) {
  float largest[kHeads], share[kHeads];
  DCULAB_UNROLL
  for (int h = 0; h < kHeads; ++h) {
    largest[h] = shared.largest[h];
    share[h] = 1.0F / shared.total[h];
  }
  for (int i = thread_index(); i < count; i += kScoresThreads) {
    float sum = load(keys.sums + begin + i);
    DCULAB_UNROLL
    for (int h = 0; h < kHeads; ++h)
      if (h < heads) sum += fast_exp(shared.scores[h][i] - largest[h]) * share[h];
    store(keys.sums + begin + i, sum);
  }
  barrier();  // scores, largest and total may be used again
}

// Of one new token and heads [first, first + kHeads) of the group, over the `visible` first places.
template <int kWave, typename Cache, int kHeads>
__device__ __forceinline__ void add_heads(const AttentionScoresLaunch& launch, const ScoredKeys& keys, int token,
                                          int first, int visible, AttentionScoresShared<kHeads>& shared) {
  constexpr int kChunk = AttentionScoresShared<kHeads>::kChunk;
  const auto queries = load_scoring_queries<Cache, kHeads>(launch, keys, token, first);
  const int heads = smaller(kHeads, keys.group_size - first);
  if (thread_index() < kHeads) {
    shared.largest[thread_index()] = kNoScore;
    shared.total[thread_index()] = 0;
  }
  for (int begin = 0; begin < visible; begin += kChunk) {
    score_chunk<kWave, Cache, kHeads>(launch, keys, queries, begin, smaller(visible, begin + kChunk), shared);
    take_in<kWave, kHeads>(smaller(visible - begin, kChunk), shared);
  }
  if (visible <= kChunk) return add_to_sums(keys, heads, 0, visible, shared);
  for (int begin = 0; begin < visible; begin += kChunk) {
    score_chunk<kWave, Cache, kHeads>(launch, keys, queries, begin, smaller(visible, begin + kChunk), shared);
    add_to_sums(keys, heads, begin, smaller(visible - begin, kChunk), shared);
  }
}

// ---- What goes ----

inline constexpr std::int32_t kNoPlace = 0x7FFFFFFF;

// The smaller sum; of equal ones, the older token. Without branches: lanes meet soon after.
__device__ __forceinline__ LeastToken lesser(const LeastToken& a, const LeastToken& b) {
  const bool is_older = (b.position < a.position) | ((b.position == a.position) & (b.place < a.place));
  const bool takes_b = (b.sum < a.sum) | ((b.sum == a.sum) & is_older);
  return {choose(takes_b, b.sum, a.sum), choose(takes_b, b.position, a.position), choose(takes_b, b.place, a.place)};
}

// Of the workgroup's sequence and KV head, among the tokens that are not of the window; the first place where all are.
template <int kWave, int kHeads>
__device__ __forceinline__ int choose_place(const AttentionScores& args, const ScoredKeys& keys,
                                            const std::int32_t* positions, int newest_to_go,
                                            AttentionScoresShared<kHeads>& shared) {
  LeastToken least{3.402823466e+38F, kNoPlace, kNoPlace};
  for (int place = thread_index(); place < args.capacity; place += kScoresThreads) {
    const LeastToken token{load(keys.sums + place), load(positions + place), place};
    if (token.position <= newest_to_go) least = lesser(least, token);
  }
  DCULAB_UNROLL
  for (int mask = 1; mask < kWave; mask *= 2)
    least = lesser(least, {shuffle_xor<kWave>(least.sum, mask), shuffle_xor<kWave>(least.position, mask),
                           shuffle_xor<kWave>(least.place, mask)});
  if (lane_index<kWave>() == 0) shared.least[wave_index<kWave>()] = least;
  barrier();
  for (int wave = 0; wave < kScoresThreads / kWave; ++wave) least = lesser(least, shared.least[wave]);
  return least.place == kNoPlace ? 0 : least.place;
}

template <int kWave, int kHeads>
__device__ __forceinline__ void make_place(const AttentionScores& args, const ScoredKeys& keys, std::int64_t row,
                                           AttentionScoresShared<kHeads>& shared) {
  const HeavyHitterState* const state = args.states + keys.seq;
  std::int32_t* const positions = load(&state->positions) + row * args.capacity;
  const int next = load(args.next_positions + keys.seq);
  const int place = choose_place<kWave, kHeads>(args, keys, positions, next - args.window, shared);
  if (thread_index() != 0) return;
  store(keys.sums + place, 0.0F);
  store(positions + place, next);
  const std::int64_t block = load(keys.table + place / args.cache.block_size);
  store(load(&state->next_slots) + row, block * args.cache.block_size + place % args.cache.block_size);
}

// Grid: KV heads, sequences.
template <int kWave, typename Cache, int kHeads>
__global__ void __launch_bounds__(kScoresThreads) attention_scores_kernel(AttentionScoresLaunch launch) {
  DCULAB_SHARED(AttentionScoresShared<kHeads>, shared);
  const AttentionScores& args = launch.args;
  ScoredKeys keys;
  keys.kv_head = workgroup_x(), keys.seq = workgroup_y(), keys.group_size = args.num_heads / args.cache.num_kv_heads;
  keys.table = args.block_tables + static_cast<std::int64_t>(keys.seq) * args.max_blocks_per_seq;
  const std::int64_t row = static_cast<std::int64_t>(args.layer) * args.cache.num_kv_heads + keys.kv_head;
  keys.sums = load(&(args.states + keys.seq)->sums) + row * args.capacity;
  const int begin = load(args.query_start_loc + keys.seq), end = load(args.query_start_loc + keys.seq + 1);
  const int context = load(args.context_lens + keys.seq);
  for (int token = begin; token < end; ++token)
    for (int first = 0; first < keys.group_size; first += kHeads)
      add_heads<kWave, Cache, kHeads>(launch, keys, token, first, context - (end - token) + 1, shared);
  if (context == args.capacity) make_place<kWave, kHeads>(args, keys, row, shared);
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
