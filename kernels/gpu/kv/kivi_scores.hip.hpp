// Scores of 32 tokens of a KIVI cache, from its keys to the shared memory of a wave.
#pragma once

#include "kernels/gpu/kv/kivi_tile.hip.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// Sums over lanes, of which `kLanes` neighbours, kStep apart, have parts of the same scores: [kCount / kHeads, kHeads].
// `token(i)`: of score row i, in the group.
template <typename Tile, int kCount, int kLanes, int kStep, typename Token>
__device__ __forceinline__ void share_scores(float* partial, KiviWaveShared<Tile>& shared, Token token) {
  constexpr int kSummed = kLanes / kStep, kSpread = kCount < kSummed ? kCount : kSummed;
  wave_transpose_sum<Tile::kWave, kCount, kLanes, kStep>(partial);
  const int lane = lane_index<Tile::kWave>() % kLanes / kStep;
  if (lane >= kSpread) return;
  DCULAB_UNROLL
  for (int c = 0; c < kCount / kSpread; ++c) {
    const int score = c * kSpread + lane;
    shared.scores[token(score / Tile::kHeads)][score % Tile::kHeads] = partial[c];
  }
}

// Of channels kKeyLanes apart.
template <typename Tile>
__device__ __forceinline__ KiviWords<Tile> load_keys(const KvCacheView& cache, const KiviWork& work,
                                                     const KiviParts& parts, std::int32_t blocks, int batch) {
  const int lane = lane_index<Tile::kWave>();
  KiviWords<Tile> keys{};
  DCULAB_UNROLL
  for (int i = 0; i < Tile::kBatch; ++i) {
    const int d = (batch + i) * Tile::kKeyLanes + lane / Tile::kBits;
    const std::int32_t block = shuffle<Tile::kWave, Tile::kWave>(blocks, parts.part(d));
    if (d >= cache.head_dim) continue;
    const KiviRecord<Tile::kBits> record(cache.k, cache, block, work.kv_head);
    load_word<Tile>(keys, i, record, parts.unit(d), lane % Tile::kBits);
  }
  return keys;
}

// Adds their products with the queries, [kCodes, kHeads], and the zeros' apart.
template <typename Tile>
__device__ __forceinline__ void multiply_keys(const KiviWords<Tile>& keys, int batch, const KiviShared<Tile>& shared,
                                              float* partial, float (&zeros)[Tile::kHeads]) {
  DCULAB_UNROLL
  for (int i = 0; i < Tile::kBatch; ++i) {
    const int d = (batch + i) * Tile::kKeyLanes + lane_index<Tile::kWave>() / Tile::kBits;
    auto query = of_heads<Tile>(shared.queries[d]);
    const float scale = to_float(keys.scales[i]), zero = to_float(keys.zeros[i]);
    DCULAB_UNROLL
    for (int h = 0; h < Tile::kHeads; ++h) {
      zeros[h] = fused_multiply_add(query[h], zero, zeros[h]);
      query[h] *= scale;
    }
    DCULAB_UNROLL
    for (int t = 0; t < Tile::kCodes; ++t) {
      const float code = kivi_code<Tile::kBits>(keys.codes[i], t / 4, t % 4);
      DCULAB_UNROLL
      for (int h = 0; h < Tile::kHeads; ++h)
        partial[t * Tile::kHeads + h] = fused_multiply_add(query[h], code, partial[t * Tile::kHeads + h]);
    }
  }
}

template <typename Tile>
__device__ __forceinline__ void score_quantized(const KvCacheView& cache, const KiviWork& work, int first,
                                                std::int32_t blocks, KiviShared<Tile>& shared) {
  constexpr int kBits = Tile::kBits, kCount = Tile::kCodes * Tile::kHeads;
  const KiviParts parts(cache, first);
  const int word = lane_index<Tile::kWave>() % kBits;
  float partial[kCount], zeros[Tile::kHeads];
  DCULAB_UNROLL
  for (int i = 0; i < kCount; ++i) partial[i] = 0;
  DCULAB_UNROLL
  for (int h = 0; h < Tile::kHeads; ++h) zeros[h] = 0;
  DCULAB_ROLLED
  for (int batch = 0; batch < Tile::kLoads; batch += Tile::kBatch) {
    const KiviWords<Tile> keys = load_keys<Tile>(cache, work, parts, blocks, batch);
    multiply_keys<Tile>(keys, batch, shared, partial, zeros);
  }
  DCULAB_UNROLL
  for (int i = 0; i < kCount; ++i) partial[i] += zeros[i % Tile::kHeads];
  share_scores<Tile, kCount, Tile::kWave, kBits>(partial, shared.waves[wave_index<Tile::kWave>()],
                                                 [&](int t) { return kivi_value<kBits>(word, t / 4, t % 4); });
}

template <typename Tile>
__device__ __forceinline__ void score_exact(const ExactTokens& tokens, const KiviWork& work, int head_dim, int first,
                                            KiviShared<Tile>& shared) {
  constexpr int kCount = Tile::kRows * Tile::kHeads;
  const int lane = lane_index<Tile::kWave>(), token_lane = lane % Tile::kTokenLanes;
  DCULAB_ROLLED
  for (int batch = 0; batch < Tile::kLoads; batch += Tile::kRows) {
    ExactRow<Tile> rows[Tile::kRows];
    load_rows<Tile>(tokens, KiviTensor::k, work, head_dim, first, batch, rows);
    float partial[kCount];
    DCULAB_UNROLL
    for (int i = 0; i < kCount; ++i) partial[i] = 0;
    DCULAB_UNROLL
    for (int i = 0; i < Tile::kCodes; ++i) {
      const auto query = of_heads<Tile>(shared.queries[kivi_channel<Tile>(token_lane, i / 4, i % 4)]);
      DCULAB_UNROLL
      for (int s = 0; s < kCount; ++s)
        partial[s] =
            fused_multiply_add(query[s % Tile::kHeads], rows[s / Tile::kHeads].planes[i / 4][i % 4], partial[s]);
    }
    share_scores<Tile, kCount, Tile::kTokenLanes, 1>(partial, shared.waves[wave_index<Tile::kWave>()], [&](int r) {
      return (batch + r) * Tile::kWaveTokens + lane / Tile::kTokenLanes;
    });
  }
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
