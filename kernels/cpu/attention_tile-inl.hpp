// The inner loop of attention: a small matrix product with a tile of K or V.
//
// An element of a product takes its terms one by one in the order of the inner index, one fused multiply-add each,
// so its bits do not depend on which rows and columns are computed beside it.
#if defined(DCULAB_KERNELS_CPU_ATTENTION_TILE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_ATTENTION_TILE_INL_HPP_
#undef DCULAB_KERNELS_CPU_ATTENTION_TILE_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_ATTENTION_TILE_INL_HPP_
#endif

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/kv/tile-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

enum class Start : std::uint8_t { at_zero, at_decayed };  // what a product is added to

// c[kRows, kVectors * lanes] = start + a[kRows, depth] b[depth, ...], where start is 0 or c * decay[row].
template <Start kStart, int kRows, int kVectors>
HWY_INLINE void multiply_block(const float* a, int a_stride, const float* b, int b_stride, int depth,
                               const float* decay, float* c, int c_stride, LinesAhead& ahead, int lines_per_step) {
  Vector sums[kRows * kVectors];
  unrolled<kRows * kVectors>([&](auto i) DCULAB_INLINE {
    constexpr int kRow = i / kVectors, kVector = i % kVectors;
    sums[i] = kStart == Start::at_zero
                  ? hn::Zero(F32())
                  : hn::Mul(load(c + kRow * c_stride + kVector * kLanes), hn::Set(F32(), decay[kRow]));
  });
  for (int k = 0; k < depth; ++k) {
    Vector columns[kVectors];
    unrolled<kVectors>([&](auto i) DCULAB_INLINE { columns[i] = load(b + k * b_stride + i * kLanes); });
    unrolled<kRows>([&](auto row) DCULAB_INLINE {
      const Vector value = hn::Set(F32(), a[row * a_stride + k]);
      unrolled<kVectors>([&](auto i) DCULAB_INLINE {
        sums[row * kVectors + i] = hn::MulAdd(value, columns[i], sums[row * kVectors + i]);
      });
    });
    ahead.ask(lines_per_step);
  }
  unrolled<kRows * kVectors>(
      [&](auto i) DCULAB_INLINE { store(sums[i], c + i / kVectors * c_stride + i % kVectors * kLanes); });
}

// A matrix product for any number of rows and vectors: c[rows, vectors * lanes] = start + a[rows, depth] b[depth, ...].
struct Product {
  const float* a;
  int a_stride, rows;
  const float* b;
  int b_stride, depth;
  const float* decay;  // [rows], unused when starting at zero
  float* c;
  int c_stride, vectors;
};

constexpr int kSumRegisters = HWY_TARGET <= HWY_AVX3 ? 16 : 12;  // the others: columns and a broadcast

// Rows from `row` on, in blocks of kRows as far as they go, each as wide as the registers allow; returns the next row.
template <Start kStart, int kRows>
HWY_INLINE int multiply_rows(const Product& p, int row, LinesAhead& ahead, int lines_per_step) {
  constexpr int kWidest = std::min(4, kSumRegisters / kRows);
  for (; row + kRows <= p.rows; row += kRows) {
    int vector = 0;
    const auto strip = [&]<int kVectors>(std::integral_constant<int, kVectors>) {
      for (; vector + kVectors <= p.vectors; vector += kVectors) {
        multiply_block<kStart, kRows, kVectors>(p.a + row * p.a_stride, p.a_stride, p.b + vector * kLanes, p.b_stride,
                                                p.depth, kStart == Start::at_decayed ? p.decay + row : nullptr,
                                                p.c + row * p.c_stride + vector * kLanes, p.c_stride, ahead,
                                                lines_per_step);
      }
    };
    strip(std::integral_constant<int, kWidest>());
    if constexpr (kWidest > 2) strip(std::integral_constant<int, 2>());
    if constexpr (kWidest > 1) strip(std::integral_constant<int, 1>());
  }
  return row;
}

template <Start kStart>
HWY_NOINLINE void multiply(const Product& product, LinesAhead& ahead, int lines_per_step) {
  int row = 0;
  if constexpr (kSumRegisters >= 16) row = multiply_rows<kStart, 8>(product, row, ahead, lines_per_step);
  row = multiply_rows<kStart, 4>(product, row, ahead, lines_per_step);
  multiply_rows<kStart, 1>(product, row, ahead, lines_per_step);
}

// Query rows whose products with K are wanted.
struct ScoredRows {
  const float* q;  // [count, stride], zero beyond head_dim
  int stride, count;
  float* scores;  // [count, kTileTokens]
};

// Rows whose sums a tile of V is added to: sums = sums * decay + scores V.
struct WeighedRows {
  const float* scores;  // [count, kTileTokens]
  const float* decay;   // [count]
  int count;
  float* sums;  // [count, width]
  int width;
};

// The first `tokens` tokens of a tile that was widened for many rows.
struct WidenedTile {
  const KvTile& tile;
  int head_dim, tokens;

  // As many times as some block asks for lines, at least.
  [[nodiscard]] int steps(int rows) const { return (rows + 7) / 8 * (head_dim + tokens); }

  void score(const ScoredRows& rows, LinesAhead& ahead, int lines_per_step) const {
    multiply<Start::at_zero>({rows.q, rows.stride, rows.count, tile.keys(), kTileTokens, head_dim, nullptr, rows.scores,
                              kTileTokens, round_up_to_lanes(tokens) / kLanes},
                             ahead, lines_per_step);
  }
  void weigh(const WeighedRows& rows, LinesAhead& ahead, int lines_per_step) const {
    multiply<Start::at_decayed>({rows.scores, kTileTokens, rows.count, tile.values(), rows.width, tokens, rows.decay,
                                 rows.sums, rows.width, rows.width / kLanes},
                                ahead, lines_per_step);
  }
};

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
