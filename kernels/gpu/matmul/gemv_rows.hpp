// A few rows of x times w^T: every weight is loaded once, by the wave that owns its row, and meets all rows of x there.
//
// A wave has kGemvColumns rows of w in hand, 16 bytes of each per lane, and fetches the next ones while it multiplies.
// A workgroup keeps a slab of x in shared memory, for all its waves.
#pragma once

#include <algorithm>

#include "kernels/gpu/matmul/weight_scale.hpp"
#include "kernels/gpu/matmul/x_rows.hpp"
#include "kernels/gpu/wave.hpp"
#include "kernels/gpu/words.hpp"
#include "lower/dculab_gpu/geometry.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// Waves of a SIMD of gfx906 that registers are limited for: eight rows of floats and FP8 weights fill more.
template <int kRows, typename X, typename W>
inline constexpr int kGemvWaves = kHasScales<W>&& std::is_same_v<X, float>&& kRows == kGemvMaxRows ? 1 : 2;

template <int kWave, int kRows, typename X, typename W>
class GemvRows {
  using Word = WordOf<X, W>;
  using Sum = SumOf<Word>;
  using OwnPiece = Piece<W, Word>;
  using XPiece = Piece<X, Word, std::min<int>(OwnPiece::kValues, 16 / sizeof(X))>;
  static constexpr int kParts = OwnPiece::kValues / XPiece::kValues;     // pieces of x to one of w
  static constexpr int kStep = kWave * OwnPiece::kValues;                // values of k that a wave takes at a time
  static constexpr int kSlab = kGemvSlabBytes / kRows / int{sizeof(X)};  // values of k in a slab
  static constexpr int kSums = kRows * kGemvColumns;
  static_assert(kSlab % kStep == 0 && kSums <= kWave);

 public:
  // Of x. The pieces to one of w stand apart, so that neighbouring lanes read neighbouring pieces.
  struct Slab {
    XPiece x[kRows][kParts][kSlab / OwnPiece::kValues];
  };

  // x: m rows of k values; w [n, k], of FP8 with `scales`. Returns in lane l < kSums the value of row l /
  // kGemvColumns and column first_column + l % kGemvColumns; other lanes repeat them.
  template <typename XRows>
  __device__ __forceinline__ Sum multiply(const XRows& x, const W* w, int m, int n, int k, int first_column, Slab& slab,
                                          const WeightScales& scales = {}) {
    fetch(w, n, k, first_column, 0, scales);
    for (int begin = 0; begin < k; begin += kSlab) {
      const int end = begin + kSlab < k ? begin + kSlab : k;
      barrier();
      keep(x, m, k, begin, end, slab);
      barrier();
      for (int step = begin; step < end; step += kStep) {
        OwnPiece weights[kGemvColumns];
        float factors[kGemvColumns];
        DCULAB_UNROLL
        for (int c = 0; c < kGemvColumns; ++c) {
          weights[c] = next_[c];
          if constexpr (kHasScales<W>) factors[c] = next_factors_[c];
        }
        fetch(w, n, k, first_column, step + kStep, scales);
        const int place = (step - begin) / OwnPiece::kValues + lane_index<kWave>();
        if constexpr (kHasScales<W>)
          add_scaled(weights, factors, slab, place);
        else
          add(weights, slab, place);
      }
    }
    wave_transpose_sum<kWave, kSums, kWave>(sums_);
    return sums_[0];
  }

 private:
  // The lane's values of the step of k that begins at `step`.
  __device__ __forceinline__ void fetch(const W* w, int n, int k, int first_column, int step,
                                        const WeightScales& scales) {
    const int ahead = lane_index<kWave>() * OwnPiece::kValues;
    DCULAB_UNROLL
    for (int c = 0; c < kGemvColumns; ++c) {
      next_[c] = {};
      if (first_column + c < n && step + ahead < k)
        load_piece(next_[c], w + static_cast<std::int64_t>(first_column + c) * k + step,
                   static_cast<std::uint32_t>(ahead) * std::uint32_t{sizeof(W)});
      if constexpr (kHasScales<W>) {
        const bool is_there = first_column + c < n && step + ahead < k;
        next_factors_[c] = is_there ? scale_of(scales, first_column + c, step + ahead) : 0.0F;
      }
    }
  }

  // Values [begin, end) of k of all rows of x, and zeros up to whole steps and kRows rows.
  template <typename XRows>
  __device__ __forceinline__ static void keep(const XRows& x, int m, int k, int begin, int end, Slab& slab) {
    const int pieces = (end - begin + kStep - 1) / kStep * (kStep / XPiece::kValues);
    DCULAB_UNROLL
    for (int row = 0; row < kRows; ++row) {
      const X* from = x.data + static_cast<std::int64_t>(same_in_wave(x.number(row))) * x.stride;
      for (int i = thread_index(); i < pieces; i += kGemvThreads) {
        const int at = begin + i * XPiece::kValues;
        XPiece piece = {};
        if (row < m && at < k) load_piece(piece, from + at, 0);
        slab.x[row][i % kParts][i / kParts] = piece;
      }
    }
  }

  // Weights are widened once for all rows, and what they add up to is scaled.
  __device__ __forceinline__ void add_scaled(const OwnPiece (&weights)[kGemvColumns],
                                             const float (&factors)[kGemvColumns], const Slab& slab, int place) {
    DCULAB_UNROLL
    for (int part = 0; part < kParts; ++part) {
      Word widened[kGemvColumns][XPiece::kWords];
      DCULAB_UNROLL
      for (int c = 0; c < kGemvColumns; ++c) {
        DCULAB_UNROLL
        for (int i = 0; i < XPiece::kWords; ++i) widened[c][i] = weights[c][part * XPiece::kWords + i];
      }
      DCULAB_UNROLL
      for (int row = 0; row < kRows; ++row) {
        const XPiece x = slab.x[row][part][place];
        DCULAB_UNROLL
        for (int c = 0; c < kGemvColumns; ++c) {
          Sum sum = 0;
          DCULAB_UNROLL
          for (int i = 0; i < XPiece::kWords; ++i) sum = multiply_add(x[i], widened[c][i], sum);
          sums_[row * kGemvColumns + c] = fused_multiply_add(sum, factors[c], sums_[row * kGemvColumns + c]);
        }
        keep_order();
      }
    }
  }

  __device__ __forceinline__ void add(const OwnPiece (&weights)[kGemvColumns], const Slab& slab, int place) {
    DCULAB_UNROLL
    for (int row = 0; row < kRows; ++row) {
      DCULAB_UNROLL
      for (int part = 0; part < kParts; ++part) {
        const XPiece x = slab.x[row][part][place];
        DCULAB_UNROLL
        for (int i = 0; i < XPiece::kWords; ++i) {
          DCULAB_UNROLL
          for (int c = 0; c < kGemvColumns; ++c) {
            Sum& sum = sums_[row * kGemvColumns + c];
            sum = multiply_add(x[i], weights[c][part * XPiece::kWords + i], sum);
          }
        }
      }
    }
  }

  OwnPiece next_[kGemvColumns];
  float next_factors_[kHasScales<W> ? kGemvColumns : 1];
  Sum sums_[kSums] = {};
};

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
