// Attention of few query rows to K and V as the cache stores them: a value is widened in the register where all rows
// multiply it (of V, blocks of 8, 4, 2 and 1 of them), and K is transposed there. Nothing is written but scores and
// sums.
//
// Terms are those of attention_tile-inl.hpp in the same order, so that a row's bits do not depend on which of the two
// computed it.
#if defined(DCULAB_KERNELS_CPU_STORED_TILE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_STORED_TILE_INL_HPP_
#undef DCULAB_KERNELS_CPU_STORED_TILE_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_STORED_TILE_INL_HPP_
#endif

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/attention_tile-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

// More rows than these are better served by a tile that is widened once (KvTile). None with fewer than 32 registers:
// sums and what is being transposed must fit into them.
constexpr int kStoredTileRows = HWY_TARGET <= HWY_AVX3 ? 8 : 0;

// K and V of up to kTileTokens tokens of a format that lies in rows.
template <typename T>
class StoredTile {
 public:
  StoredTile(const KvCacheView& cache, const KvRuns& where)
      : head_dim_(cache.head_dim), value_dim_(cache.value_width()) {
    for_each_row<T>(cache, where, [&](const KvRow<T>& k, const KvRow<T>& v) { k_[count_] = k, v_[count_++] = v; });
    std::fill(k_ + count_, k_ + round_up_to_lanes(count_), k_[std::max(0, count_ - 1)]);
  }

  // How often score() and weigh() together ask for lines, with one block of rows.
  [[nodiscard]] int steps(int) const {
    const int vectors = round_up_to_lanes(head_dim_) / kLanes, of_values = round_up_to_lanes(value_dim_) / kLanes;
    return vectors * round_up_to_lanes(count_) / kLanes +
           (of_values + 1) / 2 * ((count_ + kTokensPerAsk - 1) / kTokensPerAsk);
  }

  HWY_NOINLINE void score(const ScoredRows& rows, LinesAhead& ahead, int lines_per_step) const {
    for (int token = 0; token < count_; token += kLanes) {
      if (rows.count > 4)
        score_lanes<kStoredTileRows>(rows, token, ahead, lines_per_step);
      else if (rows.count > 1)
        score_lanes<4>(rows, token, ahead, lines_per_step);
      else
        score_lanes<1>(rows, token, ahead, lines_per_step);
    }
  }

  void weigh(const WeighedRows& rows, LinesAhead& ahead, int lines_per_step) const {
    int row = 0;
    const auto block = [&]<int kRows>(std::integral_constant<int, kRows>) {
      for (; row + kRows <= rows.count; row += kRows) {
        int d = 0;
        for (; d + 2 * kLanes <= value_dim_; d += 2 * kLanes)
          weigh_strip<kRows, 2>(rows, row, d, ahead, lines_per_step);
        for (; d < value_dim_; d += kLanes) weigh_strip<kRows, 1>(rows, row, d, ahead, lines_per_step);
      }
    };
    block(std::integral_constant<int, kStoredTileRows>());
    block(std::integral_constant<int, 4>());
    block(std::integral_constant<int, 2>());
    block(std::integral_constant<int, 1>());
  }

 private:
  static constexpr int kTokensPerAsk = 8;

  // Scores of as many tokens as a vector has lanes. Of rows beyond rows.count, up to kRows, too: they are read and
  // written in memory that SoftmaxRows keeps behind the last one.
  template <int kRows>
  HWY_INLINE void score_lanes(const ScoredRows& rows, int token, LinesAhead& ahead, int lines_per_step) const {
    Vector sums[kRows];
    unrolled<kRows>([&](auto row) DCULAB_INLINE { sums[row] = hn::Zero(F32()); });
    for (int d = 0; d < head_dim_; d += kLanes) {
      Vector block[kLanes];
      if (d + kLanes <= head_dim_)
        unrolled<kLanes>([&](auto i) DCULAB_INLINE { block[i] = k_[token + i].load_whole(d); });
      else
        unrolled<kLanes>([&](auto i) DCULAB_INLINE { block[i] = k_[token + i].load(d, head_dim_); });
      transpose(block);
      unrolled<kLanes>([&](auto i) DCULAB_INLINE {
        unrolled<kRows>([&](auto row) DCULAB_INLINE {
          sums[row] = hn::MulAdd(hn::Set(F32(), rows.q[row * rows.stride + d + i]), block[i], sums[row]);
        });
      });
      ahead.ask(lines_per_step);
    }
    unrolled<kRows>([&](auto row) DCULAB_INLINE { store(sums[row], rows.scores + row * kTileTokens + token); });
  }

  // Sums [d, d + kVectors * lanes) of kRows rows. More than one vector lies within value_dim.
  template <int kRows, int kVectors>
  HWY_INLINE void weigh_strip(const WeighedRows& rows, int row, int d, LinesAhead& ahead, int lines_per_step) const {
    const float* const scores = rows.scores + row * kTileTokens;
    const auto place = [&](auto i) DCULAB_INLINE {
      return rows.sums + (row + i / kVectors) * rows.width + d + i % kVectors * kLanes;
    };
    Vector sums[kRows * kVectors];
    unrolled<kRows * kVectors>([&](auto i) DCULAB_INLINE {
      sums[i] = hn::Mul(load(place(i)), hn::Set(F32(), rows.decay[row + i / kVectors]));
    });
    for (int first = 0; first < count_; first += kTokensPerAsk) {
      for (int token = first; token < std::min(count_, first + kTokensPerAsk); ++token) {
        Vector values[kVectors];
        unrolled<kVectors>([&](auto i) DCULAB_INLINE {
          values[i] = kVectors > 1 ? v_[token].load_whole(d + i * kLanes) : v_[token].load(d, value_dim_);
        });
        unrolled<kRows * kVectors>([&](auto i) DCULAB_INLINE {
          const Vector weight = hn::Set(F32(), scores[i / kVectors * kTileTokens + token]);
          sums[i] = hn::MulAdd(weight, values[i % kVectors], sums[i]);
        });
      }
      ahead.ask(lines_per_step);
    }
    unrolled<kRows * kVectors>([&](auto i) DCULAB_INLINE { store(sums[i], place(i)); });
  }

  int head_dim_, value_dim_, count_ = 0;
  KvRow<T> k_[kTileTokens], v_[kTileTokens];
};

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
