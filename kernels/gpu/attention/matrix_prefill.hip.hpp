// Prefill attention on matrix cores: grid, rows and tiles of tokens are those of prefill_attention.hip.hpp, and so is
// what is loaded when.
//
// A wave has 16 rows, and where a workgroup has fewer than 64 rows, waves share them and divide the columns of the
// output. Scores are keys * queries^T: a lane gets four neighbouring tokens of one row, and so its weights of the
// softmax are already where the product values^T * weights^T wants them; no weight passes through shared memory. Tokens
// i and i + 16 of the tile are pairs there, as shared memory holds the values.
#pragma once

#include "kernels/gpu/attention/prefill_rows.hip.hpp"
#include "kernels/gpu/attention/scores.hpp"
#include "kernels/gpu/matrix_core.hpp"
#include "kernels/gpu/wave.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

inline constexpr int kAttentionSide = 16;  // of the instruction

// Queries go to registers before the first keys come. Rows of values begin 16 banks apart from those four tokens
// further.
template <int kHeadDim, int kValueDim = kHeadDim>
struct MatrixPrefillTiles {
  using Value = HalfPair;
  static constexpr int kQueryDim = kHeadDim;
  static constexpr PrefillTile kTile = prefill_tile(PrefillArithmetic::half_pairs, kHeadDim);
  static constexpr int kRowWords = kHeadDim / 2;

  struct KeysAndValues {
    alignas(16) HalfPair keys[kTile.tokens][kRowWords + 4];
    alignas(16) HalfPair values[kPrefillLanes][kValueDim + 4];
  };
  union {
    alignas(16) HalfPair queries[kTile.rows][kRowWords + 4];
    KeysAndValues cached;
  };
  QueryRow rows[kTile.rows];
};

// The scores, maximum, sum and outputs of the row of a lane.
template <int kHeadDim, int kValueDim>
class MatrixPrefillLane {
 public:
  using Tiles = MatrixPrefillTiles<kHeadDim, kValueDim>;
  using Cached = typename Tiles::KeysAndValues;

  __device__ __forceinline__ explicit MatrixPrefillLane(const Tiles& tiles) : row_(tiles.rows[tile_row()]) {
    DCULAB_UNROLL
    for (int step = 0; step < kSteps; ++step) queries_[step] = words_of(tiles.queries[tile_row()], step);
    DCULAB_UNROLL
    for (int i = 0; i < kSquares; ++i) outputs_[i] = no_sums<kAttentionSide>();
  }

  // scores = keys * queries, unscaled.
  __device__ __forceinline__ void multiply_keys(const Cached& cached) {
    DCULAB_UNROLL
    for (int half = 0; half < 2; ++half) {
      scores_[half] = no_sums<kAttentionSide>();
      const HalfPair* keys = cached.keys[half * kAttentionSide + operand_row<kAttentionSide>()];
      DCULAB_UNROLL
      for (int step = 0; step < kSteps; ++step)
        multiply_matrices<kAttentionSide, Half>(words_of(keys, step), queries_[step], scores_[half]);
    }
  }

  // Scales and masks the scores of the tile from token `first` on, and turns them into weights.
  template <typename Sight>
  __device__ __forceinline__ void update_softmax(float scale, const ScoreCap& cap, const Sight& sight, int first) {
    float largest = kNoScore;
    DCULAB_UNROLL
    for (int half = 0; half < 2; ++half) {
      DCULAB_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int token = half * kAttentionSide + operand_place<kAttentionSide>() + i;
        const int distance = first + token - row_.position;
        const bool visible = sight(distance, row_);
        const float scaled = capped(scores_[half][i] * scale, cap);
        scores_[half][i] = visible ? scaled + row_.alibi_slope * static_cast<float>(distance) : kMaskedScore;
        largest = larger(largest, scores_[half][i]);
      }
    }
    const float maximum = larger(maximum_, wave_max<kMatrixLanes, kMatrixLanes, kAttentionSide>(largest));
    const float correction = fast_exp(maximum_ - maximum);
    maximum_ = maximum;
    sum_ *= correction;
    DCULAB_UNROLL
    for (int i = 0; i < kSquares; ++i) {
      DCULAB_UNROLL
      for (int j = 0; j < 4; ++j) outputs_[i][j] *= correction;
    }
    DCULAB_UNROLL
    for (int i = 0; i < 4; ++i) set_weights(i, maximum - kWeightScaleLog);
  }

  // outputs += weights * values
  __device__ __forceinline__ void multiply_values(const Cached& cached) {
    DCULAB_UNROLL
    for (int step = 0; step < 2; ++step) {
      const int token = operand_place<kAttentionSide>() + 2 * step;
      const MatrixOperand weights{{weights_[2 * step].bits, weights_[2 * step + 1].bits}};
      DCULAB_UNROLL
      for (int i = 0; i < kSquares; ++i) {
        const int column = first_column(i) + operand_row<kAttentionSide>();
        const MatrixOperand values{{cached.values[token][column].bits, cached.values[token + 1][column].bits}};
        multiply_matrices<kAttentionSide, Half>(values, weights, outputs_[i]);
      }
    }
  }

  __device__ __forceinline__ void store_outputs(const PrefillAttention& args, const QueryRows& rows,
                                                float v_scale) const {
    const float factor = v_scale / wave_sum<kMatrixLanes, kMatrixLanes, kAttentionSide>(sum_);
    const int row = tile_row();
    if (!rows.has(row)) return;
    constexpr bool kIsExpanded = kHeadDim != kValueDim;
    const int out_dim = kIsExpanded ? args.out_dim : kValueDim;
    const std::int64_t out = kIsExpanded ? rows.token(row) * args.out_stride + std::int64_t{rows.head(row)} * out_dim
                                         : (rows.token(row) * args.num_heads + rows.head(row)) * out_dim;
    DCULAB_UNROLL
    for (int i = 0; i < kSquares; ++i) {
      const int column = first_column(i) + operand_place<kAttentionSide>();
      if (kIsExpanded && column >= out_dim) continue;
      Numbers<4> numbers;
      DCULAB_UNROLL
      for (int j = 0; j < 4; ++j) numbers[j] = outputs_[i][j] * factor;
      store_numbers(args.out.data, args.out.dtype, out + column, numbers);
    }
  }

 private:
  static constexpr int kSteps = kHeadDim / kMatrixDepth<kAttentionSide>;
  // Waves that have the same rows.
  static constexpr int kSharing = kPrefillThreads / kMatrixLanes * kAttentionSide / Tiles::kTile.rows;
  static constexpr int kSquares = kValueDim / kAttentionSide / kSharing;  // of a wave's output
  static_assert(kSharing >= 1 && kSquares * kAttentionSide * kSharing == kValueDim && Tiles::kTile.tokens == 32);

  __device__ __forceinline__ static int tile_row() {
    return wave_index<kMatrixLanes>() / kSharing * kAttentionSide + operand_row<kAttentionSide>();
  }
  __device__ __forceinline__ static int first_column(int square) {
    return (wave_index<kMatrixLanes>() % kSharing * kSquares + square) * kAttentionSide;
  }
  // The lane's four values of a row, of those that step `step` multiplies.
  __device__ __forceinline__ static MatrixOperand words_of(const HalfPair* row, int step) {
    return *reinterpret_cast<const MatrixOperand*>(
        row + (step * kMatrixDepth<kAttentionSide> + operand_place<kAttentionSide>()) / 2);
  }
  // What is summed is what is multiplied: the weights as they were rounded.
  __device__ __forceinline__ void set_weights(int i, float maximum) {
    weights_[i] = pair_of(from_float<Half>(fast_exp(scores_[0][i] - maximum)),
                          from_float<Half>(fast_exp(scores_[1][i] - maximum)));
    sum_ += low_of(weights_[i]) + high_of(weights_[i]);
  }

  QueryRow row_;
  float maximum_ = kNoScore;
  float sum_ = 0;  // of this lane's weights
  MatrixOperand queries_[kSteps];
  MatrixSums<kAttentionSide> scores_[2];  // of tokens 0 to 15, and 16 to 31
  HalfPair weights_[4];
  MatrixSums<kAttentionSide> outputs_[kSquares];
};

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
