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

#include "kernels/cpu/vectors-inl.hpp"
#include "kernels/ops.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

// At head_dim 64, K and V of a tile as F32 (16 KiB), as stored, and those of the next tile share a 48 KiB L1.
constexpr int kTileTokens = 32;

constexpr int round_up_to_lanes(int count) { return (count + kLanes - 1) / kLanes * kLanes; }

// Where the tokens of one sequence and KV head lie in the cache.
struct KvStream {
  const KvCacheView* cache;
  const std::int32_t* block_table;
  int kv_head;

  // Index of the first element of a token.
  [[nodiscard]] HWY_INLINE std::ptrdiff_t element(int token) const {
    const int shift = std::countr_zero(static_cast<unsigned>(cache->block_size));
    const std::ptrdiff_t row = std::ptrdiff_t{block_table[token >> shift]} * cache->num_kv_heads + kv_head;
    return ((row << shift) + (token & (cache->block_size - 1))) * cache->head_dim;
  }
};

// The cache lines of a tile to come, asked for a few at a time between multiply-adds: memory works while they do.
class LinesAhead {
 public:
  // Lists K and V of tokens [begin, end).
  template <typename T>
  void plan(const KvStream& stream, int begin, int end) {
    constexpr int kLine = 64 / sizeof(T);
    next_ = lines_, end_ = lines_;
    for (int token = begin; token < end; ++token) {
      const std::ptrdiff_t element = stream.element(token);
      for (const void* rows : {stream.cache->k, stream.cache->v}) {
        const T* row = static_cast<const T*>(rows) + element;
        for (int d = 0; d < stream.cache->head_dim && end_ < lines_ + kMaxLines; d += kLine) *end_++ = row + d;
      }
    }
  }

  [[nodiscard]] int left() const { return static_cast<int>(end_ - next_); }
  HWY_INLINE void ask(int count) {
    for (; count > 0 && next_ != end_; --count) hwy::Prefetch(static_cast<const char*>(*next_++));
  }

 private:
  static constexpr int kMaxLines = 512;  // 32 tokens, K and V, 128 values of F32
  const void* lines_[kMaxLines];
  const void** next_ = lines_;
  const void** end_ = lines_;
};

// Four consecutive tokens of K, transposed: keys[d * kTileTokens + i] = rows[i][d] for i < 4.
template <typename T>
HWY_INLINE void transpose_four(const T* const* rows, int head_dim, float* keys) {
#if HWY_TARGET == HWY_SCALAR
  for (int d = 0; d < head_dim; ++d) {
    for (int i = 0; i < 4; ++i) store(load(rows[i] + d), keys + d * kTileTokens + i);
  }
#else
  const hn::Repartition<double, F32> pairs;
  const auto interleave = [&](Vector a, Vector b, auto&& put) {
    put(0, hn::BitCast(F32(), hn::InterleaveLower(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b))));
    put(1, hn::BitCast(F32(), hn::InterleaveUpper(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b))));
  };
  for (int d = 0; d < head_dim; d += kLanes) {
    const auto row = [&](int i) { return load_first(rows[i] + d, head_dim - d); };
    const Vector a = row(0), b = row(1), c = row(2), e = row(3);
    float* to = keys + d * kTileTokens;
    interleave(hn::InterleaveLower(F32(), a, b), hn::InterleaveLower(F32(), c, e),
               [&](int i, Vector v) { store_fours(F32(), v, to + i * kTileTokens, 4 * kTileTokens); });
    interleave(hn::InterleaveUpper(F32(), a, b), hn::InterleaveUpper(F32(), c, e),
               [&](int i, Vector v) { store_fours(F32(), v, to + (i + 2) * kTileTokens, 4 * kTileTokens); });
  }
#endif
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

  // Reads tokens [begin, begin + count) and meanwhile asks for `lines` lines of the next tile.
  // Columns of keys() and rows of values() beyond `count` are unspecified.
  template <typename T>
  void fill(const KvStream& stream, int begin, int count, LinesAhead& ahead, int lines) const {
    const int head_dim = stream.cache->head_dim;
    const T* k = static_cast<const T*>(stream.cache->k);
    const T* v = static_cast<const T*>(stream.cache->v);
    for (int token = 0; token < count; token += 4) {
      const T* k_rows[4];
      for (int i = 0; i < 4; ++i) {
        const std::ptrdiff_t element = stream.element(begin + std::min(token + i, count - 1));
        k_rows[i] = k + element;
        if (token + i < count) widen(v + element, head_dim, values_ + (token + i) * width_);
      }
      transpose_four(k_rows, head_dim, keys_ + token);
      ahead.ask(lines / (kTileTokens / 4));
    }
  }

 private:
  template <typename T>
  static HWY_INLINE void widen(const T* from, int count, float* to) {
    for (int d = 0; d < count; d += kLanes) store(load_first(from + d, count - d), to + d);
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
  Vector sums[kRows][kVectors];
  for (int row = 0; row < kRows; ++row) {
    for (int i = 0; i < kVectors; ++i) {
      sums[row][i] = kStart == Start::at_zero
                         ? hn::Zero(F32())
                         : hn::Mul(load(c + row * c_stride + i * kLanes), hn::Set(F32(), decay[row]));
    }
  }
  for (int k = 0; k < depth; ++k) {
    Vector columns[kVectors];
    for (int i = 0; i < kVectors; ++i) columns[i] = load(b + k * b_stride + i * kLanes);
    for (int row = 0; row < kRows; ++row) {
      const Vector value = hn::Set(F32(), a[row * a_stride + k]);
      for (int i = 0; i < kVectors; ++i) sums[row][i] = hn::MulAdd(value, columns[i], sums[row][i]);
    }
    ahead.ask(lines_per_step);
  }
  for (int row = 0; row < kRows; ++row) {
    for (int i = 0; i < kVectors; ++i) store(sums[row][i], c + row * c_stride + i * kLanes);
  }
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
