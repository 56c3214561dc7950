// What one lane of decode attention keeps of the query heads it serves, and how it takes in rows of K and V.
#pragma once

#include <type_traits>

#include "kernels/gpu/args.hpp"
#include "kernels/gpu/attention/cached_chunk.hpp"
#include "kernels/gpu/attention/new_tokens.hpp"
#include "kernels/gpu/attention/scores.hpp"
#include "kernels/gpu/kv_cache/paged_kv.hpp"
#include "kernels/gpu/layers/rows.hpp"
#include "kernels/gpu/wave.hpp"
#include "lower/dculab_gpu/paged_attention_tiling.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

struct PagedAttentionLaunch {
  PagedAttention args;
  int heads = 1;  // query heads of a workgroup; of several tokens: rows
  int team = 1;
  int partitions = 1;
  int row_tiles = 1;       // of several tokens: workgroups of a sequence's rows
  int block_shift = 0;     // block_size = 2^block_shift
  float score_scale = 1;   // of q * stored k
  float output_scale = 1;  // of the stored v
};

enum class LaneTeam : std::uint8_t { alone, shared };

template <int kWaveSize, typename CacheType, int kLanesOfToken, int kHeadsOfLane, LaneTeam kTeamOfLane>
struct PagedAttentionTile {
  using Cache = CacheType;
  using Pair = typename CachedNumbers<Cache>::Pair;
  static constexpr int kWave = kWaveSize, kTokenLanes = kLanesOfToken, kHeads = kHeadsOfLane;
  static constexpr LaneTeam kTeam = kTeamOfLane;
  static constexpr bool kSeveralTokens = false;
  static constexpr int kValues = 16 / sizeof(Cache);  // of a lane
  static constexpr int kWaves = kPagedAttentionThreads / kWave;
  static constexpr int kGroups = kPagedAttentionThreads / kTokenLanes;  // of the workgroup
  static constexpr int kWaveGroups = kWave / kTokenLanes;               // of a wave
  // Rows of tokens, one for each group, that a wave takes per step: as many loads of K and of V are under way at once.
  static constexpr int kSums = kHeads * kValues;
  static constexpr int kMostRows = kSums < 32 ? 4 : kTeam == LaneTeam::shared && sizeof(Pair) == 8 ? 1 : 2;
  static constexpr int kRows = kMostRows < kTokenLanes ? kMostRows : kTokenLanes;
  static constexpr int kWaveTokens = kRows * kWaveGroups;
  static constexpr int kStepTokens = kWaves * kWaveTokens;
  // The scores of a step, [kRows, kHeads], are spread over the lanes of a group: lane j holds score
  // c * kSpread + j % kSpread as held[c], which is of head j % kHeadSpread + c % kHeldHeads * kHeadSpread.
  static constexpr int kScores = kRows * kHeads;
  static constexpr int kSpread = kScores < kTokenLanes ? kScores : kTokenLanes;
  static constexpr int kHeld = kScores / kSpread;
  static constexpr int kHeadSpread = kHeads < kSpread ? kHeads : kSpread;
  static constexpr int kHeldHeads = kHeads / kHeadSpread;
  static_assert(kWaveTokens <= kWave, "a lane looks up one block of the step");
};

// Of several tokens: what are query heads to a workgroup elsewhere are rows, (token, head of the group), tokens
// slowest.
template <int kWaveSize, typename CacheType, int kLanesOfToken, int kRowsOfLane>
struct SeveralTokensTile : PagedAttentionTile<kWaveSize, CacheType, kLanesOfToken, kRowsOfLane, LaneTeam::shared> {
  static constexpr bool kSeveralTokens = true;
};

// What the workgroup works on, and where in it the lane is.
struct DecodePlace {
  int seq, partition, kv_head;
  int first_head;           // query head of the workgroup; of several tokens: row of the sequence and KV head
  int context, begin, end;  // tokens; those in [begin, end) are attended to
  NewTokens tokens;         // several
  int group_size;           // likewise: query heads of a KV head
  int token_lane;           // in its group
  int group, member;        // of the workgroup; of its team
};

template <typename Tile>
__device__ __forceinline__ DecodePlace find_place(const PagedAttentionLaunch& launch) {
  const PagedAttention& args = launch.args;
  DecodePlace place;
  place.seq = workgroup_y();
  place.partition = workgroup_z();
  place.context = load(args.context_lens + place.seq);
  if constexpr (Tile::kSeveralTokens) {
    place.tokens = new_tokens_of(args.queries, place.seq, place.context);
    place.group_size = args.num_heads / args.cache.num_kv_heads;
    place.kv_head = workgroup_x() / launch.row_tiles;
    place.first_head = workgroup_x() % launch.row_tiles * launch.heads;
    place.begin = args.sliding_window > 0 ? place.tokens.first_position() + 1 - args.sliding_window : 0;
  } else {
    place.first_head = workgroup_x() * launch.heads;
    place.kv_head = place.first_head / (args.num_heads / args.cache.num_kv_heads);
    place.begin = args.sliding_window > 0 ? place.context - args.sliding_window : 0;
  }
  place.end = place.context;
  if (launch.partitions > 1) {
    const int first = place.partition * args.partition_tokens;
    if (place.begin < first) place.begin = first;
    place.end = smaller(place.end, first + args.partition_tokens);
  }
  if (place.begin < 0) place.begin = 0;
  place.token_lane = thread_index() % Tile::kTokenLanes;
  place.group = wave_index<Tile::kWave>() * Tile::kWaveGroups + lane_index<Tile::kWave>() / Tile::kTokenLanes;
  place.member = Tile::kTeam == LaneTeam::alone ? 0 : place.group & (launch.team - 1);
  return place;
}

// Whether a workgroup has something to do for its head (or row) `head`.
template <typename Tile>
__device__ __forceinline__ bool has_head(const PagedAttentionLaunch& launch, const DecodePlace& place, int head) {
  if constexpr (Tile::kSeveralTokens)
    return head < launch.heads && place.first_head + head < place.tokens.count * place.group_size;
  return head < launch.heads;
}

// The token of the launch, and the query head, of a workgroup's head (or row).
struct QueryPlace {
  int token, head;
};
template <typename Tile>
__device__ __forceinline__ QueryPlace query_place(const DecodePlace& place, int head) {
  const int row = place.first_head + head;
  if constexpr (Tile::kSeveralTokens)
    return {place.tokens.first + row / place.group_size, place.kv_head * place.group_size + row % place.group_size};
  return {place.seq, row};
}

// What the rows of K and V that a lane has are multiplied by, where each has a scale of its own.
struct NoRowScales {};
template <int kRows>
struct RowScales {
  float keys[kRows], values[kRows];
};
template <typename Tile>
using ScalesOfRows = std::conditional_t<kHasTokenScales<typename Tile::Cache>, RowScales<Tile::kRows>, NoRowScales>;

struct NoSights {};
template <int kCount>
struct Sights {
  QuerySight of[kCount];
};

// The softmax of the heads that a lane serves, as far as its wave has come.
template <typename Tile>
struct HeadState {
  typename Tile::Pair query[Tile::kHeads][Tile::kValues / 2];
  float sums[Tile::kHeads][Tile::kValues];  // of V, weighted with e^(score - largest)
  float slope[Tile::kHeldHeads];
  float largest[Tile::kHeldHeads];  // about: see kSlack
  float weights[Tile::kHeldHeads];  // sum over the rows that this lane holds
  std::conditional_t<Tile::kSeveralTokens, Sights<Tile::kHeldHeads>, NoSights> sights;
};

// Scores may exceed `largest` by this much before the sums are scaled anew: e^8 does not overflow, and the result is
// the same.
inline constexpr float kSlack = 8;

template <typename Tile>
__device__ __forceinline__ HeadState<Tile> start_heads(const PagedAttentionLaunch& launch, const DecodePlace& place) {
  const PagedAttention& args = launch.args;
  HeadState<Tile> state;
  const int first = place.member * Tile::kHeads, value = place.token_lane * Tile::kValues;
  DCULAB_UNROLL
  for (int h = 0; h < Tile::kHeads; ++h) {
    Numbers<Tile::kValues> query{};
    if (has_head<Tile>(launch, place, first + h) && value < args.cache.head_dim) {
      const QueryPlace query_of = query_place<Tile>(place, first + h);
      query = load_numbers<Tile::kValues>(args.q.data, args.q.dtype,
                                          query_of.token * args.q_stride + query_of.head * args.cache.head_dim + value);
    }
    DCULAB_UNROLL
    for (int i = 0; i < Tile::kValues; i += 2) set_pair(state.query[h][i / 2], query[i], query[i + 1]);
    DCULAB_UNROLL
    for (int i = 0; i < Tile::kValues; ++i) state.sums[h][i] = 0;
  }
  DCULAB_UNROLL
  for (int i = 0; i < Tile::kHeldHeads; ++i) {
    const int head = first + i * Tile::kHeadSpread + place.token_lane % Tile::kHeadSpread;
    const bool exists = has_head<Tile>(launch, place, head);
    state.slope[i] = 0.0F;
    if (args.alibi_slopes != nullptr && exists)
      state.slope[i] = load(args.alibi_slopes + query_place<Tile>(place, head).head);
    if constexpr (Tile::kSeveralTokens)
      state.sights.of[i] = exists ? sight_of(args.queries, place.tokens, (place.first_head + head) / place.group_size)
                                  : QuerySight{0, 0, 0};
    state.largest[i] = kNoScore;
    state.weights[i] = 0;
  }
  return state;
}

// The largest over the lanes of the wave that hold scores of the same heads, and the sum over those that hold different
// rows.
template <typename Tile>
__device__ __forceinline__ float largest_of_heads(float value, int team) {
  value = wave_max<Tile::kWave, Tile::kTokenLanes, Tile::kHeadSpread>(value);
  for (int mask = Tile::kTokenLanes * team; mask < Tile::kWave; mask *= 2)
    value = larger(value, shuffle_xor<Tile::kWave>(value, mask));
  return value;
}
template <typename Tile>
__device__ __forceinline__ float sum_of_heads(float value, int team) {
  value = wave_sum<Tile::kWave, Tile::kSpread, Tile::kHeadSpread>(value);
  for (int mask = Tile::kTokenLanes * team; mask < Tile::kWave; mask *= 2)
    value += shuffle_xor<Tile::kWave>(value, mask);
  return value;
}

template <typename Tile>
__device__ __forceinline__ void raise_largest(HeadState<Tile>& state, const float* held, int team) {
  float factors[Tile::kHeldHeads];
  DCULAB_UNROLL
  for (int i = 0; i < Tile::kHeldHeads; ++i) {
    float raised = state.largest[i];
    DCULAB_UNROLL
    for (int c = i; c < Tile::kHeld; c += Tile::kHeldHeads) raised = larger(held[c], raised);
    raised = largest_of_heads<Tile>(raised, team);
    factors[i] = fast_exp(state.largest[i] - raised);
    state.largest[i] = raised;
    state.weights[i] *= factors[i];
  }
  DCULAB_UNROLL
  for (int h = 0; h < Tile::kHeads; ++h) {
    const float factor = shuffle<Tile::kWave, Tile::kTokenLanes>(factors[h / Tile::kHeadSpread], h % Tile::kHeadSpread);
    DCULAB_UNROLL
    for (int i = 0; i < Tile::kValues; ++i) state.sums[h][i] *= factor;
  }
}

// e^(score - largest) of the rows `keys`, whose tokens are `token`, token + kWaveGroups, ..., spread over the group.
template <typename Tile>
__device__ __forceinline__ void weigh(HeadState<Tile>& state, const PagedAttentionLaunch& launch,
                                      const DecodePlace& place, const CachedChunk* keys,
                                      const ScalesOfRows<Tile>& scales, int token, float* scores) {
  DCULAB_UNROLL
  for (int s = 0; s < Tile::kScores; ++s) scores[s] = 0;
  DCULAB_UNROLL
  for (int row = 0; row < Tile::kRows; ++row) {
    DCULAB_UNROLL
    for (int i = 0; i < Tile::kValues / 2; ++i) {
      const auto pair = CachedNumbers<typename Tile::Cache>::pair(keys[row], i);
      DCULAB_UNROLL
      for (int h = 0; h < Tile::kHeads; ++h) {
        float& score = scores[row * Tile::kHeads + h];
        score = dot2(state.query[h][i], pair, score);
      }
    }
  }
  if constexpr (kHasTokenScales<typename Tile::Cache>) {
    DCULAB_UNROLL
    for (int s = 0; s < Tile::kScores; ++s) scores[s] *= scales.keys[s / Tile::kHeads];
  }
  wave_transpose_sum<Tile::kWave, Tile::kScores, Tile::kTokenLanes>(scores);
  bool is_raised = false;
  DCULAB_UNROLL
  for (int c = 0; c < Tile::kHeld; ++c) {
    const int row = (c * Tile::kSpread + place.token_lane % Tile::kSpread) / Tile::kHeads;
    const int own = token + row * Tile::kWaveGroups;
    const float scaled = capped(scores[c] * launch.score_scale, launch.args.score_cap);
    if constexpr (Tile::kSeveralTokens) {
      const int distance = distance_to(state.sights.of[c % Tile::kHeldHeads], own), window = launch.args.sliding_window;
      const bool is_seen =
          (distance <= 0) & ((window == 0) | (distance + window > 0)) & (own >= place.begin) & (own < place.end);
      const float score = scaled + state.slope[c % Tile::kHeldHeads] * static_cast<float>(distance);
      scores[c] = choose(is_seen, score, kMaskedScore);
    } else {
      const float distance = static_cast<float>(own - (place.context - 1));
      const float score = scaled + state.slope[c % Tile::kHeldHeads] * distance;
      scores[c] = own >= place.begin && own < place.end ? score : kMaskedScore;
    }
    is_raised |= scores[c] > state.largest[c % Tile::kHeldHeads] + kSlack;
  }
  if (any_lane(is_raised)) raise_largest<Tile>(state, scores, Tile::kTeam == LaneTeam::alone ? 1 : launch.team);
  DCULAB_UNROLL
  for (int c = 0; c < Tile::kHeld; ++c) {
    scores[c] = fast_exp(scores[c] - state.largest[c % Tile::kHeldHeads]);
    state.weights[c % Tile::kHeldHeads] += scores[c];
  }
}

template <typename Tile>
__device__ __forceinline__ void add_values(HeadState<Tile>& state, const CachedChunk* values,
                                           const ScalesOfRows<Tile>& scales, const float* weights) {
  DCULAB_UNROLL
  for (int row = 0; row < Tile::kRows; ++row) {
    DCULAB_UNROLL
    for (int h = 0; h < Tile::kHeads; ++h) {
      const int score = row * Tile::kHeads + h;
      float weight = shuffle<Tile::kWave, Tile::kTokenLanes>(weights[score / Tile::kSpread], score % Tile::kSpread);
      if constexpr (kHasTokenScales<typename Tile::Cache>) weight *= scales.values[row];
      DCULAB_UNROLL
      for (int i = 0; i < Tile::kValues / 2; ++i) {
        const auto pair = CachedNumbers<typename Tile::Cache>::pair(values[row], i);
        state.sums[h][2 * i] = fused_multiply_add(weight, low_of(pair), state.sums[h][2 * i]);
        state.sums[h][2 * i + 1] = fused_multiply_add(weight, high_of(pair), state.sums[h][2 * i + 1]);
      }
    }
  }
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
