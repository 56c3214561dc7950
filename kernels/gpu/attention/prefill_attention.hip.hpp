// Attention of new tokens over paged K and V, tile by tile with an online softmax: no score outlives its tile.
//
// A workgroup serves one KV head of one sequence: its rows are pairs of a new token and a query head of the group, so
// that a tile of K and V serves the group. 16 lanes share a few rows: lane c has the scores of tokens c and c + 16, and
// 1/16 of the columns of the output. Source of the recurrence: Dao et al., FlashAttention, arXiv:2205.14135.
#pragma once

#include "kernels/gpu/attention/matrix_prefill.hip.hpp"
#include "kernels/gpu/attention/prefill_tiles.hip.hpp"
#include "kernels/gpu/attention/scores.hpp"
#include "kernels/gpu/wave.hpp"
#include "lower/dculab_gpu/latent_tiling.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// The scores, maxima, sums and outputs of the rows of a lane.
template <int kWave, typename Word, int kHeadDim, int kValueDim>
class PrefillLane {
 public:
  using Tiles = PrefillTiles<Word, kHeadDim, kValueDim>;
  static constexpr int kRows = Tiles::kTile.rows * kPrefillLanes / kPrefillThreads;
  static constexpr int kColumns = kValueDim / kPrefillLanes;
  static constexpr int kTokens = kValuesPerWord<Word>;

  __device__ __forceinline__ PrefillLane() {
    DCULAB_UNROLL
    for (int i = 0; i < kRows; ++i) {
      maxima_[i] = kNoScore;
      sums_[i] = 0;
      DCULAB_UNROLL
      for (int d = 0; d < kColumns; ++d) outputs_[i][d] = 0;
    }
  }

  // scores = queries * keys, unscaled.
  __device__ __forceinline__ void multiply_keys(const Tiles& tiles) {
    DCULAB_UNROLL
    for (int i = 0; i < kRows; ++i) {
      DCULAB_UNROLL
      for (int t = 0; t < kTokens; ++t) scores_[i][t] = 0;
    }
    DCULAB_ROLLED
    for (int word = 0; word < Tiles::kRowWords; word += 4) {
      Pack<Word, 4> keys[kTokens];
      DCULAB_UNROLL
      for (int t = 0; t < kTokens; ++t) keys[t] = four(tiles.keys[lane() + t * kPrefillLanes] + word);
      DCULAB_UNROLL
      for (int i = 0; i < kRows; ++i) {
        const auto query = four(tiles.queries[tile_row(i)] + word);
        DCULAB_UNROLL
        for (int t = 0; t < kTokens; ++t) {
          DCULAB_UNROLL
          for (int w = 0; w < 4; ++w) scores_[i][t] = add_product(query[w], keys[t][w], scores_[i][t]);
        }
      }
    }
  }

  // Scales and masks the scores of the tile from token `first` on, and turns them into weights in shared memory.
  template <typename Sight>
  __device__ __forceinline__ void update_softmax(float scale, const ScoreCap& cap, const Sight& sight, int first,
                                                 Tiles& tiles) {
    DCULAB_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const QueryRow row = tiles.rows[tile_row(i)];
      float largest = kNoScore;
      DCULAB_UNROLL
      for (int t = 0; t < kTokens; ++t) {
        const int distance = first + lane() + t * kPrefillLanes - row.position;
        const bool visible = sight(distance, row);
        const float scaled = capped(scores_[i][t] * scale, cap);
        scores_[i][t] = visible ? scaled + row.alibi_slope * static_cast<float>(distance) : kMaskedScore;
        largest = larger(largest, scores_[i][t]);
      }
      const float maximum = larger(maxima_[i], wave_max<kWave, kPrefillLanes>(largest));
      const float correction = fast_exp(maxima_[i] - maximum);
      maxima_[i] = maximum;
      sums_[i] *= correction;
      DCULAB_UNROLL
      for (int d = 0; d < kColumns; ++d) outputs_[i][d] *= correction;
      DCULAB_UNROLL
      for (int t = 0; t < kTokens; ++t) scores_[i][t] = fast_exp(scores_[i][t] - (maximum - kWeightScaleLog));
      store_weights(i, scores_[i], tiles);
    }
  }

  // outputs += weights * values
  __device__ __forceinline__ void multiply_values(const Tiles& tiles) {
    DCULAB_ROLLED
    for (int word = 0; word < kPrefillLanes; word += 4) {
      Pack<Word, 4> weights[kRows];
      DCULAB_UNROLL
      for (int i = 0; i < kRows; ++i) weights[i] = four(tiles.weights[tile_row(i)] + word);
      DCULAB_UNROLL
      for (int w = 0; w < 4; ++w) {
        each_run([&]<int kRun>(Count<kRun>, int d, int column) {
          const auto values = *reinterpret_cast<const Pack<Word, kRun>*>(&tiles.values[word + w][column]);
          DCULAB_UNROLL
          for (int i = 0; i < kRows; ++i) {
            DCULAB_UNROLL
            for (int r = 0; r < kRun; ++r)
              outputs_[i][d + r] = add_product(weights[i][w], values[r], outputs_[i][d + r]);
          }
        });
      }
    }
  }

  __device__ __forceinline__ void store_outputs(const PrefillAttention& args, const QueryRows& rows,
                                                float v_scale) const {
    DCULAB_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const float factor = v_scale / wave_sum<kWave, kPrefillLanes>(sums_[i]);
      const int row = tile_row(i);
      if (!rows.has(row)) continue;
      const int out_dim = kIsExpanded ? args.out_dim : kValueDim;
      const std::int64_t out = kIsExpanded ? rows.token(row) * args.out_stride + std::int64_t{rows.head(row)} * out_dim
                                           : (rows.token(row) * args.num_heads + rows.head(row)) * out_dim;
      each_run([&]<int kRun>(Count<kRun>, int d, int column) {
        if (kIsExpanded && column >= out_dim) return;
        Numbers<kRun> numbers;
        DCULAB_UNROLL
        for (int r = 0; r < kRun; ++r) numbers[r] = outputs_[i][d + r] * factor;
        store_numbers(args.out.data, args.out.dtype, out + column, numbers);
      });
    }
  }

 private:
  static constexpr bool kIsExpanded = kHeadDim != kValueDim;

  __device__ __forceinline__ static int lane() { return thread_index() % kPrefillLanes; }
  __device__ __forceinline__ static int tile_row(int i) { return thread_index() / kPrefillLanes * kRows + i; }
  __device__ __forceinline__ static Pack<Word, 4> four(const Word* words) {
    return *reinterpret_cast<const Pack<Word, 4>*>(words);
  }

  // What is summed is what is multiplied: the weights as they were rounded.
  __device__ __forceinline__ void store_weights(int i, const float (&weights)[2],
                                                PrefillTiles<HalfPair, kHeadDim, kValueDim>& tiles) {
    const HalfPair pair = pair_of(from_float<Half>(weights[0]), from_float<Half>(weights[1]));
    sums_[i] += to_float(low_half(pair)) + to_float(high_half(pair));
    tiles.weights[tile_row(i)][lane()] = pair;
  }
  __device__ __forceinline__ void store_weights(int i, const float (&weights)[1],
                                                PrefillTiles<float, kHeadDim, kValueDim>& tiles) {
    sums_[i] += weights[0];
    tiles.weights[tile_row(i)][lane()] = weights[0];
  }

  // The columns of a lane, in runs of 4, 2 and 1 so that the runs of 16 lanes are neighbours: body(Count<length>, index
  // among the lane's columns, column).
  template <typename Body>
  __device__ __forceinline__ static void each_run(Body body) {
    constexpr int kFours = kValueDim / 64;
    if constexpr (kFours > 0) {
      DCULAB_UNROLL
      for (int j = 0; j < kFours; ++j) body(Count<4>{}, 4 * j, 64 * j + 4 * lane());
    }
    if constexpr (kValueDim % 64 >= 32) body(Count<2>{}, 4 * kFours, 64 * kFours + 2 * lane());
    if constexpr (kValueDim % 32 >= 16) body(Count<1>{}, kColumns - 1, kValueDim - 16 + lane());
  }

  float maxima_[kRows];
  float sums_[kRows];  // of this lane's weights
  float scores_[kRows][kTokens];
  float outputs_[kRows][kColumns];
};

// Takes in the tokens of a sequence from `begin` on, whose first keys are under way: those that a row sees.
template <typename Lane, typename Couriers, typename Sight>
__device__ __forceinline__ void walk_tiles(const PrefillAttention& args, const KvSequence& sequence, int begin,
                                           float scale, const Sight& sight, Couriers& couriers, Lane& lane,
                                           typename Lane::Tiles& tiles) {
  constexpr int kStep = Lane::Tiles::kTile.tokens;
  for (int first = begin; first < sequence.end; first += kStep) {
    couriers.put_keys(sequence, tiles);
    barrier();
    couriers.fetch_values(args.cache);  // arrives while the keys are multiplied
    lane.multiply_keys(tiles);
    lane.update_softmax(scale, args.score_cap, sight, first, tiles);
    barrier();
    couriers.put_values(sequence, tiles);
    barrier();
    couriers.locate(sequence, first + kStep);
    couriers.fetch_keys(args.cache);
    lane.multiply_values(tiles);
    barrier();
  }
}

// The same on matrix cores. Keys and values have places of their own: half as many barriers.
template <typename Lane, typename Couriers, typename Sight>
__device__ __forceinline__ void walk_matrix_tiles(const PrefillAttention& args, const KvSequence& sequence, int begin,
                                                  float scale, const Sight& sight, Couriers& couriers, Lane& lane,
                                                  typename Lane::Tiles& tiles) {
  constexpr int kStep = Lane::Tiles::kTile.tokens;
  for (int first = begin; first < sequence.end; first += kStep) {
    couriers.put_keys(sequence, tiles.cached);
    barrier();
    couriers.fetch_values(args.cache);  // arrives while the keys are multiplied
    lane.multiply_keys(tiles.cached);
    lane.update_softmax(scale, args.score_cap, sight, first);
    couriers.put_values(sequence, tiles.cached);
    barrier();
    couriers.locate(sequence, first + kStep);
    couriers.fetch_keys(args.cache);
    lane.multiply_values(tiles.cached);
  }
}

// query_dim: see load_queries().
template <int kWave, typename Word, int kHeadDim, int kValueDim>
__device__ __forceinline__ void attend_on_vector_units(const PrefillAttention& args, int query_dim) {
  using Tiles = PrefillTiles<Word, kHeadDim, kValueDim>;
  static_assert(kWave % kPrefillLanes == 0);
  DCULAB_SHARED(Tiles, tiles);
  const auto [rows, sequence, window, begin, scale] = attended_by_workgroup(args, Tiles::kTile.rows);
  if (!rows.has(0)) return;
  KvCouriers<Word, kHeadDim, kValueDim> couriers;
  PrefillLane<kWave, Word, kHeadDim, kValueDim> lane;
  load_queries(args, rows, query_dim, tiles);
  couriers.locate(sequence, begin);
  couriers.fetch_keys(args.cache);
  walk_tiles(args, sequence, begin, scale, CausalSight{window}, couriers, lane, tiles);
  lane.store_outputs(args, rows, v_scale_of(args.cache));
}

template <int kHeadDim, int kValueDim>
__device__ __forceinline__ void attend_on_matrix_cores(const PrefillAttention& args, int query_dim) {
  using Tiles = MatrixPrefillTiles<kHeadDim, kValueDim>;
  DCULAB_SHARED(Tiles, tiles);
  const auto [rows, sequence, window, begin, scale] = attended_by_workgroup(args, Tiles::kTile.rows);
  if (!rows.has(0)) return;
  KvCouriers<HalfPair, kHeadDim, kValueDim> couriers;
  load_queries(args, rows, query_dim, tiles);
  couriers.locate(sequence, begin);
  couriers.fetch_keys(args.cache);
  barrier();
  MatrixPrefillLane<kHeadDim, kValueDim> lane(tiles);
  barrier();
  walk_matrix_tiles(args, sequence, begin, scale, CausalSight{window}, couriers, lane, tiles);
  lane.store_outputs(args, rows, v_scale_of(args.cache));
}

// query_dim: see load_queries(). Halves go to matrix cores where there are some.
template <int kWave, typename Word, int kHeadDim, int kValueDim>
__device__ __forceinline__ void attend(const PrefillAttention& args, int query_dim) {
  constexpr bool kIsHalf = std::is_same_v<Word, HalfPair> && kWave == kMatrixLanes;
  if constexpr (kMatrixCores != MatrixCores::absent && kIsHalf) {
    if (has_matrix_cores()) return attend_on_matrix_cores<kHeadDim, kValueDim>(args, query_dim);
  }
  if constexpr (kMatrixCores != MatrixCores::present || !kIsHalf)
    attend_on_vector_units<kWave, Word, kHeadDim, kValueDim>(args, query_dim);
}

// Grid: tiles of rows (the longest contexts first), KV heads, sequences.
template <int kWave, typename Word, int kHeadDim>
__global__ void __launch_bounds__(kPrefillThreads, (kPrefillWorkgroups<PrefillTiles<Word, kHeadDim>>))
    prefill_attention_kernel(PrefillAttention args) {
  attend<kWave, Word, kHeadDim, kHeadDim>(args, kHeadDim);
}

// The same over K and V that latents were expanded to, whose heads have other sizes.
template <int kWave, typename Word>
__global__ void __launch_bounds__(kPrefillThreads,
                                  (kPrefillWorkgroups<PrefillTiles<Word, kExpandedHeadDim, kExpandedValueDim>>))
    expanded_attention_kernel(PrefillAttention args) {
  attend<kWave, Word, kExpandedHeadDim, kExpandedValueDim>(args, args.query_dim);
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
