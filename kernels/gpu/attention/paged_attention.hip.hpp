// Attention of one query token per sequence, or a few, over its paged KV cache (decode).
//
// A workgroup serves some query heads of one KV head over a partition of a sequence's context. A group of kTokenLanes
// lanes holds a token's K (then V) of the head, 16 bytes per lane; each wave goes over its own tokens with a softmax of
// its own, merged in shared memory at the end. Each lane serves kHeads query heads. Where the workgroup serves more,
// teams of lane groups divide them, and what one group has loaded the whole team reads from shared memory: however many
// heads there are, the workgroup loads each K and V once. It treats further tokens of a sequence as further heads.
#pragma once

#include "kernels/gpu/attention/paged_attention_heads.hpp"
#include "kernels/gpu/kv_cache/paged_kv.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

template <typename Tile>
struct PagedAttentionShared {
  static constexpr int kStagedRows = Tile::kTeam == LaneTeam::alone ? 1 : Tile::kRows;
  struct StagedRows {
    CachedChunk keys[kStagedRows][kPagedAttentionThreads], values[kStagedRows][kPagedAttentionThreads];
    ScalesOfRows<Tile> scales[kHasTokenScales<typename Tile::Cache> ? Tile::kGroups : 1];
  };
  union {
    StagedRows staged;                                                   // during the walk
    float numerators[Tile::kGroups][Tile::kTokenLanes * Tile::kValues];  // afterwards: of one head of each lane
  };
  // Of each wave, or of the waves that a team spans: [row, team * kHeads].
  float largest[Tile::kGroups * Tile::kHeads], weights[Tile::kGroups * Tile::kHeads];
  // Of all: [team * kHeads].
  float total_largest[Tile::kGroups * Tile::kHeads], total_weights[Tile::kGroups * Tile::kHeads];
};

// ---- Going over the context ----

// KV block of the token that this lane looks up for its wave: lane i token first + i.
template <typename Tile>
__device__ __forceinline__ std::int32_t look_up_block(const PagedAttentionLaunch& launch, const DecodePlace& place,
                                                      int first) {
  const int lane = lane_index<Tile::kWave>(), token = first + lane;
  if (lane >= Tile::kWaveTokens || token < place.begin || token >= place.end) return 0;
  const std::int64_t table = static_cast<std::int64_t>(place.seq) * launch.args.max_blocks_per_seq;
  return load(launch.args.block_tables + table + (token >> launch.block_shift));
}

template <typename Tile>
struct LoadedRows {
  CachedChunk keys[Tile::kRows], values[Tile::kRows];
  ScalesOfRows<Tile> scales;
};

// Of a lane's row, which is that of a token and head of the cache.
template <typename Tile>
__device__ __forceinline__ void load_row_scales(LoadedRows<Tile>& rows, int row, const KvCacheView& cache,
                                                std::int64_t token) {
  if constexpr (kHasTokenScales<typename Tile::Cache>) {
    const auto scales = cache.extras.as<Int8KvScales>();
    rows.scales.keys[row] = load(scales.k + token);
    rows.scales.values[row] = load(scales.v + token);
  }
}

// Rows of the kWaveTokens tokens from `first`; zeros where there is nothing to attend to.
template <typename Tile>
__device__ __forceinline__ LoadedRows<Tile> load_rows(const PagedAttentionLaunch& launch, const DecodePlace& place,
                                                      int first, std::int32_t looked_up) {
  using Cache = typename Tile::Cache;
  const KvCacheView& cache = launch.args.cache;
  const int value = place.token_lane * Tile::kValues;
  LoadedRows<Tile> rows{};
  std::int64_t offsets[Tile::kRows];
  DCULAB_UNROLL
  for (int row = 0; row < Tile::kRows; ++row) {
    const int place_in_step = row * Tile::kWaveGroups + place.group % Tile::kWaveGroups, token = first + place_in_step;
    const std::int32_t block = shuffle<Tile::kWave, Tile::kWave>(looked_up, place_in_step);
    const bool is_valid = token >= place.begin && token < place.end && value < cache.head_dim;
    offsets[row] =
        is_valid ? cache_row(cache, block, place.kv_head, token & (cache.block_size - 1)) + value : std::int64_t{-1};
    if (!is_valid) continue;
    rows.keys[row] = load(reinterpret_cast<const CachedChunk*>(static_cast<const Cache*>(cache.k) + offsets[row]));
    load_row_scales<Tile>(rows, row, cache, token_row(cache, block, place.kv_head, token & (cache.block_size - 1)));
  }
  DCULAB_UNROLL
  for (int row = 0; row < Tile::kRows; ++row)
    if (offsets[row] >= 0)
      rows.values[row] = load(reinterpret_cast<const CachedChunk*>(static_cast<const Cache*>(cache.v) + offsets[row]));
  return rows;
}

template <typename Tile>
__device__ __forceinline__ void walk_alone(HeadState<Tile>& state, const PagedAttentionLaunch& launch,
                                           const DecodePlace& place) {
  int first = place.begin / Tile::kWaveTokens * Tile::kWaveTokens + wave_index<Tile::kWave>() * Tile::kWaveTokens;
  std::int32_t block = look_up_block<Tile>(launch, place, first);
  for (; first < place.end; first += Tile::kStepTokens) {
    const LoadedRows<Tile> rows = load_rows<Tile>(launch, place, first, block);
    block = look_up_block<Tile>(launch, place, first + Tile::kStepTokens);
    float scores[Tile::kScores];
    weigh<Tile>(state, launch, place, rows.keys, rows.scales, first + place.group % Tile::kWaveGroups, scores);
    add_values<Tile>(state, rows.values, rows.scales, scores);
  }
}

// Until all of the team have come here.
template <typename Tile>
__device__ __forceinline__ void meet_team(int team) {
  if (team <= Tile::kWaveGroups)
    wave_barrier();
  else
    barrier();
}

// What each group has loaded, all groups of its team go over. The next rows are under way meanwhile.
template <typename Tile>
__device__ __forceinline__ void walk_shared(HeadState<Tile>& state, const PagedAttentionLaunch& launch,
                                            const DecodePlace& place,
                                            typename PagedAttentionShared<Tile>::StagedRows& staged) {
  const int own_first = wave_index<Tile::kWave>() * Tile::kWaveTokens, thread = thread_index();
  int step = place.begin / Tile::kWaveTokens * Tile::kWaveTokens;
  LoadedRows<Tile> rows =
      load_rows<Tile>(launch, place, step + own_first, look_up_block<Tile>(launch, place, step + own_first));
  std::int32_t block = look_up_block<Tile>(launch, place, step + own_first + Tile::kStepTokens);
  for (; step < place.end; step += Tile::kStepTokens) {
    DCULAB_UNROLL
    for (int row = 0; row < Tile::kRows; ++row) {
      staged.keys[row][thread] = rows.keys[row];
      staged.values[row][thread] = rows.values[row];
    }
    if constexpr (kHasTokenScales<typename Tile::Cache>)
      if (place.token_lane == 0) staged.scales[place.group] = rows.scales;
    meet_team<Tile>(launch.team);
    const int next = step + own_first + Tile::kStepTokens;
    rows = load_rows<Tile>(launch, place, next, block);
    block = look_up_block<Tile>(launch, place, next + Tile::kStepTokens);
    for (int member = 0; member < launch.team; ++member) {
      const int group = place.group - place.member + member;
      const int lane = group * Tile::kTokenLanes + place.token_lane;
      const int token = step + group / Tile::kWaveGroups * Tile::kWaveTokens + group % Tile::kWaveGroups;
      CachedChunk chunks[Tile::kRows];
      DCULAB_UNROLL
      for (int row = 0; row < Tile::kRows; ++row) chunks[row] = staged.keys[row][lane];
      ScalesOfRows<Tile> scales;
      if constexpr (kHasTokenScales<typename Tile::Cache>) scales = staged.scales[group];
      float scores[Tile::kScores];
      weigh<Tile>(state, launch, place, chunks, scales, token, scores);
      DCULAB_UNROLL
      for (int row = 0; row < Tile::kRows; ++row) chunks[row] = staged.values[row][lane];
      add_values<Tile>(state, chunks, scales, scores);
    }
    meet_team<Tile>(launch.team);
  }
}

// ---- Merging what the waves have found ----

// Index of the heads of lane `place` in PagedAttentionShared::largest.
template <typename Tile>
__device__ __forceinline__ int wave_slot(const PagedAttentionLaunch& launch, const DecodePlace& place) {
  const int groups_of_row = launch.team > Tile::kWaveGroups ? launch.team : Tile::kWaveGroups;
  return (place.group / groups_of_row * launch.team + place.member) * Tile::kHeads;
}

template <typename Tile>
__device__ __forceinline__ void merge_weights(const HeadState<Tile>& state, const PagedAttentionLaunch& launch,
                                              const DecodePlace& place, PagedAttentionShared<Tile>& shared) {
  DCULAB_UNROLL
  for (int i = 0; i < Tile::kHeldHeads; ++i) {
    const float weights = sum_of_heads<Tile>(state.weights[i], launch.team);
    if (place.token_lane >= Tile::kHeadSpread) continue;
    const int slot = wave_slot<Tile>(launch, place) + i * Tile::kHeadSpread + place.token_lane;
    shared.largest[slot] = state.largest[i];
    shared.weights[slot] = weights;
  }
  barrier();
  const int slots = launch.team * Tile::kHeads;
  const int rows = Tile::kGroups / (launch.team > Tile::kWaveGroups ? launch.team : Tile::kWaveGroups);
  for (int slot = thread_index(); slot < slots; slot += kPagedAttentionThreads) {
    float largest = kNoScore, weights = 0;
    for (int row = 0; row < rows; ++row) largest = larger(shared.largest[row * slots + slot], largest);
    for (int row = 0; row < rows; ++row)
      weights += shared.weights[row * slots + slot] * fast_exp(shared.largest[row * slots + slot] - largest);
    shared.total_largest[slot] = largest;
    shared.total_weights[slot] = weights;
  }
  barrier();
}

// Value `value` of a query head: the result, or a partition's share for paged_attention_combine_kernel.
__device__ __forceinline__ void write_result(const PagedAttentionLaunch& launch, int partition, QueryPlace query,
                                             int value, float sum, float largest, float weights) {
  const PagedAttention& args = launch.args;
  const std::int64_t row = static_cast<std::int64_t>(query.token) * args.num_heads + query.head;
  if (launch.partitions == 1) {
    const float scaled = weights == 0 ? 0.0F : sum / weights * launch.output_scale;  // 0: an empty context
    return store_number(args.out.data, args.out.dtype, row * args.cache.head_dim + value, scaled);
  }
  const std::int64_t part = row * launch.partitions + partition;
  const std::int64_t parts = static_cast<std::int64_t>(args.queries.num_tokens) * args.num_heads * launch.partitions;
  store(args.workspace + part * args.cache.head_dim + value, sum);
  if (value != 0) return;
  store(args.workspace + parts * args.cache.head_dim + part, largest);
  store(args.workspace + parts * (args.cache.head_dim + 1) + part, weights);
}

template <typename Tile>
__device__ __forceinline__ void merge_sums(const HeadState<Tile>& state, const PagedAttentionLaunch& launch,
                                           const DecodePlace& place, PagedAttentionShared<Tile>& shared) {
  const int head_dim = launch.args.cache.head_dim, slot = wave_slot<Tile>(launch, place);
  float* numerators = shared.numerators[place.group] + place.token_lane * Tile::kValues;
  DCULAB_UNROLL
  for (int h = 0; h < Tile::kHeads; ++h) {
    const float factor = fast_exp(shared.largest[slot + h] - shared.total_largest[place.member * Tile::kHeads + h]);
    DCULAB_UNROLL
    for (int i = 0; i < Tile::kValues; ++i) numerators[i] = state.sums[h][i] * factor;
    barrier();
    for (int i = thread_index(); i < launch.team * head_dim; i += kPagedAttentionThreads) {
      const int member = i / head_dim, value = i % head_dim, head = member * Tile::kHeads + h;
      if (!has_head<Tile>(launch, place, head)) continue;
      float sum = 0;
      for (int group = member; group < Tile::kGroups; group += launch.team) sum += shared.numerators[group][value];
      write_result(launch, place.partition, query_place<Tile>(place, head), value, sum, shared.total_largest[head],
                   shared.total_weights[head]);
    }
    barrier();
  }
}

template <typename Tile>
__global__ void __launch_bounds__(kPagedAttentionThreads, 2) paged_attention_kernel(PagedAttentionLaunch launch) {
  DCULAB_SHARED(PagedAttentionShared<Tile>, shared);
  const DecodePlace place = find_place<Tile>(launch);
  if (launch.partitions > 1 && place.begin >= place.end) return;  // nor does the second pass look at it
  if constexpr (Tile::kSeveralTokens)
    if (!has_head<Tile>(launch, place, 0)) return;
  HeadState<Tile> state = start_heads<Tile>(launch, place);
  if constexpr (Tile::kTeam == LaneTeam::alone)
    walk_alone<Tile>(state, launch, place);
  else
    walk_shared<Tile>(state, launch, place, shared.staged);
  merge_weights<Tile>(state, launch, place, shared);
  merge_sums<Tile>(state, launch, place, shared);
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
