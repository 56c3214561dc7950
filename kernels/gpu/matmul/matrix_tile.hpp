// One tile of x * w^T, computed by a workgroup: on matrix cores where the target has them and both formats go there,
// else on vector units (gemm_tile.hpp). Grid, tile and what is loaded when are the same.
//
// Slabs of k lie in shared memory row by row. Four waves divide the tile; each has squares of 32 rows of y and 32 of
// its columns. The instruction's A is w and its B is x, so that a lane gets runs of four neighbouring columns of a row
// of y.
//
// F16 x F16 is multiplied as it is. BF16 weights are multiplied by x in BF16, which has 8 of the 11 bits of an F16, or
// of the 24 of an F32: x is cut into two or three parts whose sum it is, and products are exact.
#pragma once

#include "kernels/gpu/matmul/gemm_tile.hpp"
#include "kernels/gpu/matrix_core.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// What the instruction multiplies, and how many of its values make one of x; 0: it is left to vector units.
template <typename X, typename W>
struct MatrixFormat {
  using Value = Half;
  static constexpr int kParts = 0;
};
template <>
struct MatrixFormat<Half, Half> {
  using Value = Half;
  static constexpr int kParts = 1;
};
template <>
struct MatrixFormat<Half, Bf16> {
  using Value = Bf16;
  static constexpr int kParts = 2;
};
template <>
struct MatrixFormat<float, Bf16> {
  using Value = Bf16;
  static constexpr int kParts = 3;
};

inline constexpr int kMatrixSide = 32;
inline constexpr int kMatrixSlab = 32;  // values of k
// Lanes that read 8 bytes of neighbouring rows, 72 bytes apart, meet other banks.
inline constexpr int kMatrixPitch = kMatrixSlab / 2 + 2;

template <int kRows>
struct MatrixSlab {
  alignas(16) std::uint32_t words[kRows][kMatrixPitch];
};

template <int kRows, int kParts>
struct MatrixSlabs {
  MatrixSlab<kRows> x[kParts];
  MatrixSlab<kGemmColumns> w;
};

// The first 8 bits of a number, and what is left: no bit gets lost. Infinity leaves nothing.
__device__ __forceinline__ Bf16 take_bf16(float& value) {
  const std::uint32_t first = __builtin_bit_cast(std::uint32_t, value) & 0xFFFF0000U;
  const float taken = __builtin_bit_cast(float, first);
  value = taken == value ? 0.0F : value - taken;
  return Bf16{static_cast<std::uint16_t>(first >> 16)};
}

// What one thread carries from global memory to a slab: 16 bytes of rows of T, which become kParts values each.
template <typename T, int kRows>
class MatrixSlabPart {
 public:
  static constexpr int kValues = 16 / static_cast<int>(sizeof(T));
  static constexpr int kRowPieces = kMatrixSlab / kValues;
  static constexpr int kPieces = kRows * kRowPieces;
  static constexpr int kOwn = (kPieces + kGemmThreads - 1) / kGemmThreads;

  __device__ __forceinline__ static int row_of(int i) { return (thread_index() + i * kGemmThreads) / kRowPieces; }

  // The slab that begins at k; rows and values that are not there are zeros.
  template <typename Rows>
  __device__ __forceinline__ void fetch(const Rows& from, int k) {
    const T* corner = from.corner(k);
    DCULAB_UNROLL
    for (int i = 0; i < kOwn; ++i) {
      const int row = row_of(i), ahead = place_of(i) * kValues;
      pieces_[i] = {};
      if (is_mine(i) && from.has(row) && k + ahead < from.k_end)
        pieces_[i] = load(reinterpret_cast<const Pack<T, kValues>*>(reinterpret_cast<const char*>(corner) +
                                                                    from.offset(i, row, ahead)));
    }
  }

  // Into kParts slabs.
  template <int kParts>
  __device__ __forceinline__ void put(MatrixSlab<kRows>* slabs) const {
    DCULAB_UNROLL
    for (int i = 0; i < kOwn; ++i) {
      if (!is_mine(i)) continue;
      if constexpr (kParts == 1)
        store_piece(slabs[0], i, __builtin_bit_cast(Stored, pieces_[i]));
      else
        put_parts<kParts>(slabs, i);
    }
  }

 private:
  using Stored = Pack<std::uint16_t, kValues>;

  __device__ __forceinline__ static bool is_mine(int i) {
    return kPieces % kGemmThreads == 0 || thread_index() + i * kGemmThreads < kPieces;
  }
  __device__ __forceinline__ static int place_of(int i) { return (thread_index() + i * kGemmThreads) % kRowPieces; }

  template <int kParts>
  __device__ __forceinline__ void put_parts(MatrixSlab<kRows>* slabs, int i) const {
    float left[kValues];
    DCULAB_UNROLL
    for (int j = 0; j < kValues; ++j) left[j] = to_float(pieces_[i][j]);
    DCULAB_UNROLL
    for (int part = 0; part < kParts; ++part) {
      Stored values;
      DCULAB_UNROLL
      for (int j = 0; j < kValues; ++j) values[j] = take_bf16(left[j]).bits;
      store_piece(slabs[part], i, values);
    }
  }

  __device__ __forceinline__ static void store_piece(MatrixSlab<kRows>& slab, int i, const Stored& values) {
    DCULAB_UNROLL
    for (int j = 0; j < kValues; j += 4) {
      const Pack<std::uint16_t, 4> four{values[j], values[j + 1], values[j + 2], values[j + 3]};
      *reinterpret_cast<MatrixOperand*>(&slab.words[row_of(i)][(place_of(i) * kValues + j) / 2]) =
          __builtin_bit_cast(MatrixOperand, four);
    }
  }

  Pack<T, kValues> pieces_[kOwn];
};

// The sums of a tile that one wave owns, as its lanes hold them.
template <int kRows>
struct MatrixTileSums {
  static constexpr int kRowWaves = kRows > kMatrixSide ? 2 : 1, kColumnWaves = kGemmThreads / kMatrixLanes / kRowWaves;
  static constexpr int kRowSquares = kRows / kMatrixSide / kRowWaves;
  static constexpr int kColumnSquares = kGemmColumns / kMatrixSide / kColumnWaves;

  MatrixSums<kMatrixSide> sums[kRowSquares][kColumnSquares];
  const float* bias = nullptr;  // [columns of y], or null

  // Where a square begins in the tile.
  __device__ __forceinline__ static int first_row(int square) {
    return (wave_index<kMatrixLanes>() / kColumnWaves * kRowSquares + square) * kMatrixSide;
  }
  __device__ __forceinline__ static int first_column(int square) {
    return (wave_index<kMatrixLanes>() % kColumnWaves * kColumnSquares + square) * kMatrixSide;
  }
  // Of the tile: the lane's row, and the first of the four columns of a run.
  __device__ __forceinline__ static int row(int square) { return first_row(square) + operand_row<kMatrixSide>(); }
  __device__ __forceinline__ static int column(int square, int run) {
    return first_column(square) + sum_row<kMatrixSide>(run);
  }

  __device__ __forceinline__ void clear() {
    DCULAB_UNROLL
    for (int i = 0; i < kRowSquares; ++i) {
      DCULAB_UNROLL
      for (int j = 0; j < kColumnSquares; ++j) sums[i][j] = no_sums<kMatrixSide>();
    }
  }

  template <typename Value, int kParts>
  __device__ __forceinline__ void add(const MatrixSlabs<kRows, kParts>& slabs) {
    DCULAB_UNROLL
    for (int k = 0; k < kMatrixSlab; k += kMatrixDepth<kMatrixSide>) {
      MatrixOperand w[kColumnSquares];
      DCULAB_UNROLL
      for (int j = 0; j < kColumnSquares; ++j) w[j] = read(slabs.w, first_column(j), k);
      DCULAB_UNROLL
      for (int part = 0; part < kParts; ++part) {
        DCULAB_UNROLL
        for (int i = 0; i < kRowSquares; ++i) {
          const MatrixOperand x = read(slabs.x[part], first_row(i), k);
          DCULAB_UNROLL
          for (int j = 0; j < kColumnSquares; ++j) multiply_matrices<kMatrixSide, Value>(w[j], x, sums[i][j]);
        }
      }
    }
  }

 private:
  template <int kSlabRows>
  __device__ __forceinline__ static MatrixOperand read(const MatrixSlab<kSlabRows>& slab, int first, int k) {
    return *reinterpret_cast<const MatrixOperand*>(
        &slab.words[first + operand_row<kMatrixSide>()][(k + operand_place<kMatrixSide>()) / 2]);
  }
};

template <int kRows, typename X, typename W, typename XRows>
__device__ __forceinline__ MatrixTileSums<kRows> multiply_matrix_slabs(
    const XRows& x, const TileRows<W>& w, int k_begin, MatrixSlabs<kRows, MatrixFormat<X, W>::kParts>& slabs) {
  using Format = MatrixFormat<X, W>;
  MatrixTileSums<kRows> tile;
  tile.clear();
  MatrixSlabPart<X, kRows> x_part;
  MatrixSlabPart<W, kGemmColumns> w_part;
  x_part.fetch(x, k_begin);
  w_part.fetch(w, k_begin);
  for (int k = k_begin; k < x.k_end; k += kMatrixSlab) {
    barrier();
    x_part.template put<Format::kParts>(slabs.x);
    w_part.template put<1>(&slabs.w);
    barrier();
    x_part.fetch(x, k + kMatrixSlab);
    w_part.fetch(w, k + kMatrixSlab);
    tile.template add<typename Format::Value>(slabs);
  }
  return tile;
}

// See gemm_tile.hpp. Added as the sums are stored, run by run: changed here, they would all leave their registers,
// those of the matrix cores, at once.
template <int kRows>
__device__ __forceinline__ void add_bias(MatrixTileSums<kRows>& tile, const float* bias, int /*n*/,
                                         int /*first_column*/) {
  tile.bias = bias;
}

template <int kRows>
__device__ __forceinline__ void store_tile(const MatrixTileSums<kRows>& tile, Output y, int part, int m, int n,
                                           int y_stride, int first_row, int first_column) {
  DCULAB_UNROLL
  for (int i = 0; i < tile.kRowSquares; ++i) {
    const int row = first_row + tile.row(i);
    if (row >= m) continue;
    const std::int64_t begin = (static_cast<std::int64_t>(part) * m + row) * y_stride;
    DCULAB_UNROLL
    for (int j = 0; j < tile.kColumnSquares; ++j) {
      DCULAB_UNROLL
      for (int run = 0; run < kSumRuns<kMatrixSide>; ++run) {
        keep_order();
        const int column = first_column + tile.column(j, run);
        Numbers<4> values;
        DCULAB_UNROLL
        for (int each = 0; each < 4; ++each) {
          values[each] = tile.sums[i][j][4 * run + each];
          if (tile.bias != nullptr) values[each] += load(tile.bias + smaller(column + each, n - 1));
        }
        store_columns(y, begin + column, values, n - column);
      }
    }
  }
}

// What fetches x: rows that may lie anywhere are found once for each of its pieces.
template <typename Part>
struct Fetched {};

// body(the sums of the tile), for add_bias() and store_tile(). x_of(Fetched<Part>) gives the rows of x.
template <int kRows, typename X, typename W, typename XOf, typename Body>
__device__ __forceinline__ void with_tile_sums(XOf x_of, const TileRows<W>& w, int k_begin, Body body) {
  constexpr int kParts = MatrixFormat<X, W>::kParts;
  if constexpr (kMatrixCores != MatrixCores::absent && kParts > 0) {
    if (has_matrix_cores()) {
      using Slabs = MatrixSlabs<kRows, kParts>;
      DCULAB_SHARED(Slabs, slabs);
      auto tile = multiply_matrix_slabs<kRows, X, W>(x_of(Fetched<MatrixSlabPart<X, kRows>>{}), w, k_begin, slabs);
      body(tile);
      return;
    }
  }
  if constexpr (kMatrixCores != MatrixCores::present || kParts == 0) {
    using Word = SlabWordOf<X, W>;
    using Slabs = GemmSlabs<Word, kRows>;
    DCULAB_SHARED(Slabs, slabs);
    auto tile = multiply_slabs<Word, kRows>(x_of(Fetched<SlabPart<X, Word, kRows>>{}), w, k_begin, slabs);
    body(tile);
  }
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
