// Attention of one query token per sequence over a KIVI cache (decode): first the quantized groups, then the newest
// tokens, 32 at a time. Each wave goes over its own with a softmax of its own, merged in shared memory at the end.
#pragma once

#include "kernels/gpu/attention/paged_attention.hip.hpp"
#include "kernels/gpu/kv/kivi_scores.hip.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

__device__ __forceinline__ KiviWork find_work(const KiviAttentionLaunch& launch) {
  const PagedAttention& args = launch.decode.args;
  const int group = args.num_heads / args.cache.num_kv_heads, per_parts = launch.decode.heads;
  const int asked = args.heads_per_workgroup > 0 ? args.heads_per_workgroup : group;
  const int part = workgroup_x() % launch.parts;
  KiviWork work;
  work.seq = workgroup_y();
  work.first_head = workgroup_x() / launch.parts * asked + part * per_parts;
  work.heads = smaller(per_parts, asked - part * per_parts);
  work.kv_head = work.first_head / group;
  work.context = load(args.context_lens + work.seq);
  work.begin = args.sliding_window > 0 ? work.context - args.sliding_window : 0;
  work.end = work.context;
  if (launch.decode.partitions > 1) {
    const int first = workgroup_z() * args.partition_tokens;
    if (work.begin < first) work.begin = first;
    work.end = smaller(work.end, first + args.partition_tokens);
  }
  if (work.begin < 0) work.begin = 0;
  work.quantized = kivi_quantized_tokens(work.context, args.cache.extras.as<KiviOnDevice>().residual.tokens);
  work.table = args.block_tables + std::int64_t{work.seq} * args.max_blocks_per_seq;
  return work;
}

template <typename Tile>
__device__ __forceinline__ KiviState<Tile> start_heads(const PagedAttention& args, const KiviWork& work,
                                                       KiviShared<Tile>& shared) {
  for (int i = thread_index(); i < Tile::kChannels * Tile::kHeads; i += kPagedAttentionThreads) {
    const int d = i % Tile::kChannels, head = i / Tile::kChannels;
    float query = 0;
    if (d < args.cache.head_dim && head < work.heads)
      query = load_number(args.q.data, args.q.dtype,
                          work.seq * args.q_stride + std::int64_t{work.first_head + head} * args.cache.head_dim + d);
    shared.queries[d][head] = query;
  }
  KiviState<Tile> state{};
  const int head = thread_index() % Tile::kHeads;
  if (args.alibi_slopes != nullptr && head < work.heads) state.slope = load(args.alibi_slopes + work.first_head + head);
  state.largest = kNoScore;
  barrier();
  return state;
}

template <typename Tile>
__device__ __forceinline__ void walk_quantized(KiviState<Tile>& state, const PagedAttentionLaunch& launch,
                                               const KiviWork& work, KiviShared<Tile>& shared) {
  constexpr int kStep = Tile::kWaves * kKiviGroup;
  const KvCacheView& cache = launch.args.cache;
  KiviWaveShared<Tile>& own = shared.waves[wave_index<Tile::kWave>()];
  const int end = smaller(work.end, work.quantized);
  int first = (work.begin / kKiviGroup + wave_index<Tile::kWave>()) * kKiviGroup;
  std::int32_t blocks = look_up_blocks<Tile>(cache, work, first);
  for (; first < end; first += kStep) {
    score_quantized<Tile>(cache, work, first, blocks, shared);
    KiviWords<Tile> values = load_values<Tile>(cache, work, first, blocks, 0);  // arrive while scores are weighed
    wave_barrier();
    weigh<Tile>(state, launch, work, first, own);
    wave_barrier();
    DCULAB_ROLLED
    for (int batch = 0; batch < Tile::kLoads; batch += Tile::kBatch) {
      if (batch > 0) values = load_values<Tile>(cache, work, first, blocks, batch);
      add_quantized<Tile>(state, values, batch, own);
    }
    blocks = look_up_blocks<Tile>(cache, work, first + kStep);
    wave_barrier();
  }
}

template <typename Tile>
__device__ __forceinline__ void walk_exact(KiviState<Tile>& state, const PagedAttentionLaunch& launch,
                                           const KiviWork& work, KiviShared<Tile>& shared) {
  const KvCacheView& cache = launch.args.cache;
  KiviWaveShared<Tile>& own = shared.waves[wave_index<Tile::kWave>()];
  const ExactTokens tokens(cache, KiviPlace(work.seq, nullptr, launch.args.context_lens), work.kv_head);
  int first = work.begin > work.quantized ? work.begin / kKiviGroup * kKiviGroup : work.quantized;
  first += wave_index<Tile::kWave>() * kKiviGroup;
  for (; first < work.end; first += Tile::kWaves * kKiviGroup) {
    score_exact<Tile>(tokens, work, cache.head_dim, first, shared);
    wave_barrier();
    weigh<Tile>(state, launch, work, first, own);
    wave_barrier();
    add_exact<Tile>(state, tokens, work, cache.head_dim, first, own);
    wave_barrier();
  }
}

// ---- Merging what the waves have found ----

template <typename Tile>
__device__ __forceinline__ void share_weights(const KiviState<Tile>& state, KiviWaveShared<Tile>& own) {
  const float weights = wave_sum<Tile::kWave, Tile::kWave, Tile::kHeads>(state.weights);
  if (lane_index<Tile::kWave>() >= Tile::kHeads) return;
  own.largest[lane_index<Tile::kWave>()] = state.largest;
  own.weights[lane_index<Tile::kWave>()] = weights;
}

template <typename Tile>
__device__ __forceinline__ void merge(const KiviState<Tile>& state, const KiviAttentionLaunch& launch,
                                      const KiviWork& work, KiviShared<Tile>& shared) {
  const int head_dim = launch.decode.args.cache.head_dim, lane = lane_index<Tile::kWave>();
  const int token_lane = lane % Tile::kTokenLanes;
  const int group = wave_index<Tile::kWave>() * Tile::kWaveTokens + lane / Tile::kTokenLanes;
  share_weights<Tile>(state, shared.waves[wave_index<Tile::kWave>()]);
  barrier();
  DCULAB_UNROLL
  for (int h = 0; h < Tile::kHeads; ++h) {
    float largest = kNoScore, weights = 0;
    for (int wave = 0; wave < Tile::kWaves; ++wave) largest = larger(shared.waves[wave].largest[h], largest);
    for (int wave = 0; wave < Tile::kWaves; ++wave)
      weights += shared.waves[wave].weights[h] * fast_exp(shared.waves[wave].largest[h] - largest);
    const float factor = fast_exp(shared.waves[wave_index<Tile::kWave>()].largest[h] - largest);
    DCULAB_UNROLL
    for (int c = 0; c < Tile::kCodes; ++c)
      shared.numerators[group][kivi_channel<Tile>(token_lane, c / 4, c % 4)] =
          (state.sums[h][c] + state.zeros[h]) * factor;
    barrier();
    for (int value = thread_index(); value < head_dim && h < work.heads; value += kPagedAttentionThreads) {
      float sum = 0;
      for (int i = 0; i < Tile::kGroups; ++i) sum += shared.numerators[i][value];
      write_result(launch.decode, workgroup_z(), {work.seq, work.first_head + h}, value, sum, largest, weights);
    }
    barrier();
  }
}

// Grid: parts of query heads, sequences, partitions.
template <typename Tile>
__global__ void __launch_bounds__(kPagedAttentionThreads, 2) kivi_attention_kernel(KiviAttentionLaunch launch) {
  DCULAB_SHARED(KiviShared<Tile>, shared);
  const KiviWork work = find_work(launch);
  if (launch.decode.partitions > 1 && work.begin >= work.end) return;  // nor does the second pass look at it
  KiviState<Tile> state = start_heads<Tile>(launch.decode.args, work, shared);
  walk_quantized<Tile>(state, launch.decode, work, shared);
  walk_exact<Tile>(state, launch.decode, work, shared);
  merge<Tile>(state, launch, work, shared);
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
