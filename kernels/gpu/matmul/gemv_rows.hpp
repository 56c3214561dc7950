// A few rows of x times w^T: every weight is loaded once, by the wave that owns its row, and meets all rows of x there.
//
// A wave has kGemvColumns rows of w in hand, 16 bytes of each per lane, and fetches the next ones while it multiplies.
// A workgroup keeps a slab of x in shared memory, for all its waves.
#pragma once

#include <algorithm>

#include "kernels/gpu/matmul/x_rows.hpp"
#include "kernels/gpu/wave.hpp"
#include "kernels/gpu/words.hpp"
#include "lower/dculab_gpu/geometry.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

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

  // x: m rows of k values; w [n, k]. Returns in lane l < kSums the value of row l /
  // kGemvColumns and column first_column + l % kGemvColumns; other lanes repeat them.
  template <typename XRows>
  __device__ __forceinline__ Sum multiply(const XRows& x, const W* w, int m, int n, int k, int first_column,
                                          Slab& slab) {
    fetch(w, n, k, first_column, 0);
    for (int begin = 0; begin < k; begin += kSlab) {
      const int end = begin + kSlab < k ? begin + kSlab : k;
      barrier();
      keep(x, m, k, begin, end, slab);
      barrier();
      for (int step = begin; step < end; step += kStep) {
        OwnPiece weights[kGemvColumns];
        DCULAB_UNROLL
        for (int c = 0; c < kGemvColumns; ++c) weights[c] = next_[c];
        fetch(w, n, k, first_column, step + kStep);
        add(weights, slab, (step - begin) / OwnPiece::kValues + lane_index<kWave>());
      }
    }
    wave_transpose_sum<kWave, kSums, kWave>(sums_);
    return sums_[0];
  }

 private:
  // The lane's values of the step of k that begins at `step`.
  __device__ __forceinline__ void fetch(const W* w, int n, int k, int first_column, int step) {
    const int ahead = lane_index<kWave>() * OwnPiece::kValues;
    DCULAB_UNROLL
    for (int c = 0; c < kGemvColumns; ++c) {
      next_[c] = {};
      if (first_column + c < n && step + ahead < k)
        load_piece(next_[c], w + static_cast<std::int64_t>(first_column + c) * k + step,
                   static_cast<std::uint32_t>(ahead) * std::uint32_t{sizeof(W)});
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
  Sum sums_[kSums] = {};
};

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
