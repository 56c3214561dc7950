// The two inner loops of attention: a tile of K and V out of the paged cache, and a small matrix product with it.
//
// An element of a product takes its terms one by one in the order of the inner index, one fused multiply-add each,
// so its bits do not depend on which rows and columns are computed beside it.
#if defined(DCULAB_KERNELS_CPU_ATTENTION_TILE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_ATTENTION_TILE_INL_HPP_
#undef DCULAB_KERNELS_CPU_ATTENTION_TILE_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_ATTENTION_TILE_INL_HPP_
#endif

#include <hwy/cache_control.h>

#include <algorithm>
#include <bit>
#include <type_traits>

#include "kernels/cpu/transpose-inl.hpp"
#include "kernels/ops.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

constexpr int kTileTokens = 64;  // K and V of a tile as F32: 32 KiB at head_dim 64, in L1

constexpr int round_up_to_lanes(int count) { return (count + kLanes - 1) / kLanes * kLanes; }

// Where K or V of a tile's tokens lie in the cache: one run of bytes for each block it touches.
struct KvRuns {
  struct Run {
    std::ptrdiff_t first_value;
    int tokens;
  };
  Run runs[kTileTokens];
  int num_runs = 0;

  // Tokens [begin, end) of one sequence and KV head.
  void find(const KvCacheView& cache, const std::int32_t* block_table, int kv_head, int begin, int end) {
    const int shift = std::countr_zero(static_cast<unsigned>(cache.block_size));
    num_runs = 0;
    for (int token = begin; token < end;) {
      const int offset = token & (cache.block_size - 1);
      const std::ptrdiff_t row = std::ptrdiff_t{block_table[token >> shift]} * cache.num_kv_heads + kv_head;
      const int tokens = std::min(cache.block_size - offset, end - token);
      runs[num_runs++] = {((row << shift) + offset) * cache.head_dim, tokens};
      token += tokens;
    }
  }
};

// The cache lines of a tile to come, asked for a few at a time between multiply-adds: memory works while they do.
class LinesAhead {
 public:
  template <typename T>
  void plan(const KvCacheView& cache, const KvRuns& where) {
    constexpr int kLine = 64 / sizeof(T);
    next_ = 0, num_ranges_ = 0, left_ = 0;
    for (int i = 0; i < where.num_runs; ++i) {
      const KvRuns::Run& run = where.runs[i];
      const int lines = (run.tokens * cache.head_dim + kLine - 1) / kLine;
      for (const void* values : {cache.k, cache.v}) {
        ranges_[num_ranges_++] = {reinterpret_cast<const char*>(static_cast<const T*>(values) + run.first_value),
                                  lines};
        left_ += lines;
      }
    }
  }

  [[nodiscard]] int left() const { return left_; }
  HWY_INLINE void ask(int count) {
    for (; count > 0 && next_ < num_ranges_; --count) {
      Range& range = ranges_[next_];
      hwy::Prefetch(range.line);
      range.line += 64;
      --left_;
      if (--range.lines == 0) ++next_;
    }
  }

 private:
  struct Range {
    const char* line;
    int lines;
  };
  Range ranges_[2 * kTileTokens];
  int next_ = 0, num_ranges_ = 0, left_ = 0;
};

// As many tokens of K as a vector has lanes, transposed: keys[d * kTileTokens + i] = rows[i][d].
template <typename T>
HWY_INLINE void transpose_tokens(const T* const* rows, int head_dim, float* keys) {
  const auto put = [&](Vector(&block)[kLanes], int d) DCULAB_INLINE {
    transpose(block);
    unrolled<kLanes>([&](auto i) DCULAB_INLINE { store(block[i], keys + (d + i) * kTileTokens); });
  };
  Vector block[kLanes];
  int d = 0;
  for (; d + kLanes <= head_dim; d += kLanes) {
    unrolled<kLanes>([&](auto i) DCULAB_INLINE { block[i] = load(rows[i] + d); });
    put(block, d);
  }
  if (d < head_dim) {
    for (int i = 0; i < kLanes; ++i) block[i] = load_first(rows[i] + d, head_dim - d);
    put(block, d);
  }
}

// K and V of up to kTileTokens tokens as F32.
class KvTile {
 public:
  static std::size_t floats(int head_dim) {
    return static_cast<std::size_t>(2 * kTileTokens * round_up_to_lanes(head_dim));
  }
  KvTile(float* memory, int head_dim)
      : width_(round_up_to_lanes(head_dim)), keys_(memory), values_(memory + kTileTokens * width_) {}

  [[nodiscard]] const float* keys() const { return keys_; }      // [head_dim, kTileTokens]
  [[nodiscard]] const float* values() const { return values_; }  // [kTileTokens, width]
  [[nodiscard]] int width() const { return width_; }

  // Reads the tokens of `where` and meanwhile asks for `lines` lines of the next tile.
  // Columns of keys() and rows of values() beyond those tokens are unspecified.
  template <typename T>
  void fill(const KvCacheView& cache, const KvRuns& where, LinesAhead& ahead, int lines) const {
    const T* k_rows[kTileTokens];
    const int lines_per_token = (lines + kTileTokens - 1) / kTileTokens;
    int count = 0;
    for (int i = 0; i < where.num_runs; ++i) {
      const KvRuns::Run& run = where.runs[i];
      const T* k = static_cast<const T*>(cache.k) + run.first_value;
      const T* v = static_cast<const T*>(cache.v) + run.first_value;
      for (int token = 0; token < run.tokens; ++token, ++count) {
        k_rows[count] = k + token * cache.head_dim;
        widen(v + token * cache.head_dim, cache.head_dim, values_ + count * width_);
        ahead.ask(lines_per_token);
      }
    }
    std::fill(k_rows + count, k_rows + round_up_to_lanes(count), k_rows[count - 1]);
    for (int token = 0; token < count; token += kLanes) {
      transpose_tokens(k_rows + token, cache.head_dim, keys_ + token);
    }
  }

 private:
  template <typename T>
  static HWY_INLINE void widen(const T* from, int count, float* to) {
    int d = 0;
    for (; d + kLanes <= count; d += kLanes) store(load(from + d), to + d);
    if (d < count) store(load_first(from + d, count - d), to + d);
  }

  int width_;
  float* keys_;
  float* values_;
};

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

// Rows from `row` on, in blocks of kRows as far as they go, each as wide as the registers allow; returns the next row.
template <Start kStart, int kRows>
HWY_INLINE int multiply_rows(const Product& p, int row, LinesAhead& ahead, int lines_per_step) {
  constexpr int kRegisters = HWY_TARGET <= HWY_AVX3 ? 16 : 8;  // for sums
  constexpr int kWidest = std::min(4, kRegisters / kRows);
  for (; row + kRows <= p.rows; row += kRows) {
    int vector = 0;
    const auto strip = [&]<int kVectors>(std::integral_constant<int, kVectors>) {
      for (; vector + kVectors <= p.vectors; vector += kVectors) {
        multiply_block<kStart, kRows, kVectors>(p.a + row * p.a_stride, p.a_stride, p.b + vector * kLanes, p.b_stride,
                                                p.depth, p.decay + row, p.c + row * p.c_stride + vector * kLanes,
                                                p.c_stride, ahead, lines_per_step);
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
  int row = multiply_rows<kStart, 8>(product, 0, ahead, lines_per_step);
  row = multiply_rows<kStart, 4>(product, row, ahead, lines_per_step);
  multiply_rows<kStart, 1>(product, row, ahead, lines_per_step);
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
