// One tile of x * w^T, computed by a workgroup: slabs of k pass through shared memory, the sums stay in registers.
//
// Each thread fetches its part of the next slab while the workgroup multiplies the current one. The 256 threads stand
// in 16 rows of 16; a thread owns rows and columns in groups of up to four neighbours, which it reads with one
// instruction.
#pragma once

#include "kernels/gpu/layers/rows.hpp"
#include "kernels/gpu/matmul/weight_scale.hpp"
#include "kernels/gpu/words.hpp"
#include "lower/dculab_gpu/geometry.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

inline constexpr int kGemmSide = 16;  // threads along the rows, and along the columns, of a tile
static_assert(kGemmSide * kGemmSide == kGemmThreads);

// One operand's rows of the tile and words of the slab. Of the 32 banks of shared memory, a row would have all its
// words in one; so every four words the rows are moved by eight banks (an XOR: groups of four rows stay together). Then
// neither writing pieces of rows nor reading neighbouring rows has two lanes at different words of a bank.
template <typename Word, int kRows>
struct Slab {
  alignas(16) Word words[kGemmSlabWords][kRows];

  __device__ __forceinline__ static int place(int word, int row) { return row ^ (word / 4 % 4 * 8); }
};

// The rows of an operand that a tile needs, from k_begin to k_end.
template <typename T>
struct TileRows {
  using Value = T;
  const T* data;  // [rows, stride]
  int first, rows;
  int stride;
  int k_end;
  WeightScales scales{};  // of FP8

  // From here on offsets are counted: the same in all lanes.
  __device__ __forceinline__ const T* corner(int k) const {
    return data + static_cast<std::int64_t>(first) * stride + k;
  }
  __device__ __forceinline__ bool has(int row) const { return first + row < rows; }
  // Bytes from the corner to value `ahead` of a row of the tile, which is the i-th that the thread fetches.
  __device__ __forceinline__ std::uint32_t offset(int /*i*/, int row, int ahead) const {
    return static_cast<std::uint32_t>(row * stride + ahead) * std::uint32_t{sizeof(T)};
  }
};

// What one thread carries from global memory to a slab.
template <typename T, typename Word, int kRows>
class SlabPart {
 public:
  using OwnPiece = Piece<T, Word>;
  static constexpr int kRowPieces = kGemmSlabWords / OwnPiece::kWords;
  static constexpr int kPieces = kRows * kRowPieces;
  static constexpr int kOwn = (kPieces + kGemmThreads - 1) / kGemmThreads;

  // Of the tile: where the thread's i-th piece lies.
  __device__ __forceinline__ static int row_of(int i) { return (thread_index() + i * kGemmThreads) / kRowPieces; }

  // The slab that begins at k; rows and values that are not there are zeros.
  template <typename Rows>
  __device__ __forceinline__ void fetch(const Rows& from, int k) {
    const T* corner = from.corner(k);
    DCULAB_UNROLL
    for (int i = 0; i < kOwn; ++i) {
      const int row = row_of(i), ahead = place_of(i) * OwnPiece::kValues;
      pieces_[i] = {};
      if (is_mine(i) && from.has(row) && k + ahead < from.k_end)
        load_piece(pieces_[i], corner, from.offset(i, row, ahead));
      if constexpr (kHasScales<T>) {
        const bool is_there = is_mine(i) && from.has(row) && k + ahead < from.k_end;
        factors_[i] = is_there ? scale_of(from.scales, from.first + row, k + ahead) : 0.0F;
      }
    }
  }

  __device__ __forceinline__ void put(Slab<Word, kRows>& slab) const {
    DCULAB_UNROLL
    for (int i = 0; i < kOwn; ++i) {
      if (!is_mine(i)) continue;
      DCULAB_UNROLL
      for (int j = 0; j < OwnPiece::kWords; ++j) {
        const int word = place_of(i) * OwnPiece::kWords + j;
        if constexpr (kHasScales<T>)
          slab.words[word][slab.place(word, row_of(i))] = pieces_[i][j] * factors_[i];
        else
          slab.words[word][slab.place(word, row_of(i))] = pieces_[i][j];
      }
    }
  }

 private:
  __device__ __forceinline__ static bool is_mine(int i) {
    return kPieces % kGemmThreads == 0 || thread_index() + i * kGemmThreads < kPieces;
  }
  __device__ __forceinline__ static int place_of(int i) { return (thread_index() + i * kGemmThreads) % kRowPieces; }

  OwnPiece pieces_[kOwn];
  float factors_[kHasScales<T> ? kOwn : 1];
};

template <typename Word, int kRows>
struct GemmSlabs {
  Slab<Word, kRows> x;
  Slab<Word, kGemmColumns> w;
};

// One operand's side of a thread's sums: which of the tile's kRows rows (or columns) it owns.
template <int kRows>
struct Share {
  static constexpr int kOwn = kRows / kGemmSide;
  static constexpr int kGroup = kOwn < 4 ? kOwn : 4;

  // The i-th own row, where the thread is the `side`-th of 16.
  __device__ __forceinline__ static int row(int side, int i) {
    return i / kGroup * kGroup * kGemmSide + side * kGroup + i % kGroup;
  }

  template <typename Word>
  __device__ __forceinline__ static void read(const Slab<Word, kRows>& slab, int word, int side, Word (&own)[kOwn]) {
    DCULAB_UNROLL
    for (int i = 0; i < kOwn; i += kGroup) {
      const auto group =
          *reinterpret_cast<const Pack<Word, kGroup>*>(&slab.words[word][slab.place(word, row(side, i))]);
      DCULAB_UNROLL
      for (int j = 0; j < kGroup; ++j) own[i + j] = group[j];
    }
  }
};

// The sums of a tile that one thread owns.
template <typename Sum, int kRows>
struct TileSums {
  using Rows = Share<kRows>;
  using Columns = Share<kGemmColumns>;

  Sum sums[Rows::kOwn][Columns::kOwn] = {};

  // In the tile.
  __device__ __forceinline__ static int row(int i) { return Rows::row(thread_index() / kGemmSide, i); }
  __device__ __forceinline__ static int column(int j) { return Columns::row(thread_index() % kGemmSide, j); }

  template <typename Word>
  __device__ __forceinline__ void add(const GemmSlabs<Word, kRows>& slabs) {
    for (int pair = 0; pair < kGemmSlabWords; pair += 2) {
      DCULAB_UNROLL
      for (int word = pair; word < pair + 2; ++word) {
        Word x[Rows::kOwn], w[Columns::kOwn];
        Rows::read(slabs.x, word, thread_index() / kGemmSide, x);
        Columns::read(slabs.w, word, thread_index() % kGemmSide, w);
        DCULAB_UNROLL
        for (int i = 0; i < Rows::kOwn; ++i) {
          DCULAB_UNROLL
          for (int j = 0; j < Columns::kOwn; ++j) sums[i][j] = multiply_add(x[i], w[j], sums[i][j]);
        }
      }
    }
  }
};

template <typename Word, int kRows, typename XRows, typename W>
__device__ __forceinline__ TileSums<SumOf<Word>, kRows> multiply_slabs(const XRows& x, const TileRows<W>& w,
                                                                       int k_begin, GemmSlabs<Word, kRows>& slabs) {
  constexpr int kSlab = kGemmSlabWords * kWordValues<Word>;
  TileSums<SumOf<Word>, kRows> sums;
  SlabPart<typename XRows::Value, Word, kRows> x_part;
  SlabPart<W, Word, kGemmColumns> w_part;
  x_part.fetch(x, k_begin);
  w_part.fetch(w, k_begin);
  for (int k = k_begin; k < x.k_end; k += kSlab) {
    barrier();
    x_part.put(slabs.x);
    w_part.put(slabs.w);
    barrier();
    x_part.fetch(x, k + kSlab);
    w_part.fetch(w, k + kSlab);
    sums.add(slabs);
  }
  return sums;
}

// Adds its column's bias to every sum; bias: [n], or null.
template <int kRows>
__device__ __forceinline__ void add_bias(TileSums<float, kRows>& tile, const float* bias, int n, int first_column) {
  if (bias == nullptr) return;
  DCULAB_UNROLL
  for (int j = 0; j < Share<kGemmColumns>::kOwn; ++j) {
    const int column = first_column + tile.column(j);
    const float addend = column < n ? load(bias + column) : 0.0F;
    DCULAB_UNROLL
    for (int i = 0; i < Share<kRows>::kOwn; ++i) tile.sums[i][j] += addend;
  }
}

// Four neighbouring values of a row of y, or as many of them as there are columns.
__device__ __forceinline__ void store_columns(Output y, std::int64_t index, const Numbers<4>& values, int columns) {
  const int bytes = y.dtype == Dtype::f32 ? 4 : 2;
  const auto address = reinterpret_cast<std::uintptr_t>(y.data) + static_cast<std::uintptr_t>(index * bytes);
  if (columns >= 4 && address % static_cast<std::uintptr_t>(4 * bytes) == 0) {
    store_numbers(y.data, y.dtype, index, values);
    return;
  }
  DCULAB_UNROLL
  for (int i = 0; i < 4; ++i)
    if (i < columns) store_number(y.data, y.dtype, index + i, values[i]);
}

// To y[part], [parts, m, y_stride], whose first n columns are used, from (first_row, first_column) on.
template <int kRows>
__device__ __forceinline__ void store_tile(const TileSums<float, kRows>& tile, Output y, int part, int m, int n,
                                           int y_stride, int first_row, int first_column) {
  using Columns = Share<kGemmColumns>;
  DCULAB_UNROLL
  for (int i = 0; i < Share<kRows>::kOwn; ++i) {
    const int row = first_row + tile.row(i);
    if (row >= m) continue;
    const std::int64_t begin = (static_cast<std::int64_t>(part) * m + row) * y_stride;
    DCULAB_UNROLL
    for (int j = 0; j < Columns::kOwn; j += Columns::kGroup) {
      const int column = first_column + tile.column(j);
      const Numbers<4> values{{tile.sums[i][j], tile.sums[i][j + 1], tile.sums[i][j + 2], tile.sums[i][j + 3]}};
      store_columns(y, begin + column, values, n - column);
    }
  }
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
