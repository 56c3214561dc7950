// Online softmax of a few query rows over the KV tiles of a partition, and how partitions are combined.
//
// A row keeps its largest score m, the sum l of exp(score - m) and acc = sum of exp(score - m) * v. Raising m to m'
// multiplies l and acc by exp(m - m') (Milakov & Gimelshein 2018; Dao et al. 2022). Partitions begin at fixed
// positions and are folded together in order, so the result has the same bits whoever computed which of them.
#if defined(DCULAB_KERNELS_CPU_ATTENTION_STATE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_ATTENTION_STATE_INL_HPP_
#undef DCULAB_KERNELS_CPU_ATTENTION_STATE_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_ATTENTION_STATE_INL_HPP_
#endif

#include <limits>

#include "kernels/cpu/attention_plan.hpp"
#include "kernels/cpu/exponential-inl.hpp"
#include "kernels/cpu/stored_tile-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

constexpr float kNoScore = std::numeric_limits<float>::lowest();  // finite, so that differences are numbers

HWY_INLINE float exp_of(float x) { return hn::GetLane(exponential(hn::Set(F32(), x))); }

// Softmax over part of the context: partial[0] = m, partial[1] = l, then acc[width].
struct Partial {
  float* memory;

  static int floats(int width) { return 2 + width; }
  [[nodiscard]] float& largest() const { return memory[0]; }
  [[nodiscard]] float& total() const { return memory[1]; }
  [[nodiscard]] float* sums() const { return memory + 2; }

  void clear(int width) const {
    std::fill_n(memory, floats(width), 0.0F);
    largest() = kNoScore;
  }

  // Adds what another part of the context contributes.
  void fold(const Partial& other, int width) const {
    const float raised = std::max(largest(), other.largest());
    const float mine = exp_of(largest() - raised), theirs = exp_of(other.largest() - raised);
    largest() = raised;
    total() = total() * mine + other.total() * theirs;
    const Vector scale = hn::Set(F32(), mine), other_scale = hn::Set(F32(), theirs);
    for (int d = 0; d < width; d += kLanes) {
      store(hn::MulAdd(load(sums() + d), scale, hn::Mul(load(other.sums() + d), other_scale)), sums() + d);
    }
  }

  void finish(float* out, int value_dim) const {
    const Vector scale = hn::Set(F32(), 1.0F / total());
    for (int d = 0; d < value_dim; d += kLanes) {
      store_first(hn::Mul(load(sums() + d), scale), out + d, value_dim - d);
    }
  }
};

// What becomes of a score, most of it by the distance between query and key.
struct Distance {
  const float* slopes = nullptr;  // [group_size] of ALiBi: slope * (key - query) is added to a score; or null
  int window = 0;                 // a query sees itself and the window - 1 tokens before it; 0 = all
  float soft_cap = 0;             // scores become cap * tanh(score / cap) first; 0 = none
};

// Query rows (token, head of the group), tokens slowest, on their way through one partition.
class SoftmaxRows {
 public:
  static std::size_t floats(int max_rows, int head_dim, int value_dim) {
    const int q_width = round_up_to_lanes(head_dim), width = round_up_to_lanes(value_dim);
    const int padded = round_up_to_lanes(max_rows);
    const int readable = max_rows + kRowsBehind;
    return static_cast<std::size_t>(max_rows * (width + kLanes) + readable * (q_width + kTileTokens) + 2 * padded);
  }
  SoftmaxRows(float* memory, int max_rows, int head_dim, int value_dim)
      : head_dim_(head_dim),
        q_width_(round_up_to_lanes(head_dim)),
        width_(round_up_to_lanes(value_dim)),
        largest_(memory),
        decay_(largest_ + round_up_to_lanes(max_rows)),
        totals_(decay_ + round_up_to_lanes(max_rows)),
        scores_(totals_ + max_rows * kLanes),
        sums_(scores_ + (max_rows + kRowsBehind) * kTileTokens),
        q_(sums_ + max_rows * width_) {}

  // Takes the scaled queries of `group_size` heads of a tile's tokens. `paths`: the tile's, where they are of a tree.
  void take_queries(const float* q, std::int64_t q_stride, int group_size, float scale, const QueryTile& tile,
                    const TreePath* paths, Distance distance) {
    rows_ = tile.tokens * group_size, group_size_ = group_size, first_position_ = tile.first_position;
    paths_ = paths, distance_ = distance;
    for (int row = 0; row < rows_; ++row) {
      const int index = row / group_size, token = paths == nullptr ? tile.first_token + index : paths[index].token;
      const float* from = q + token * q_stride + row % group_size * head_dim_;
      float* const to = q_ + row * q_width_;
      for (int d = 0; d < head_dim_; ++d) to[d] = from[d] * scale;
      std::fill(to + head_dim_, to + q_width_, 0.0F);
    }
    std::fill_n(q_ + rows_ * q_width_, kRowsBehind * q_width_, 0.0F);
  }

  [[nodiscard]] int rows() const { return rows_; }
  struct Range {
    int begin = 0, end = 0;
  };

  void start_partition() const {
    std::fill_n(largest_, round_up_to_lanes(rows_), kNoScore);
    std::fill_n(totals_, rows_ * kLanes, 0.0F);
    std::fill_n(sums_, rows_ * width_, 0.0F);
  }

  // The rows that see any of the tokens [begin, end): those whose token is not before `begin`, and whose window has not
  // left `end` behind. first may exceed last: none.
  [[nodiscard]] int first_row_seeing(int begin) const { return tokens_before(begin) * group_size_; }
  [[nodiscard]] int last_row_seeing(int end) const {
    if (distance_.window == 0) return rows_;
    return std::min(tokens_before(end - 1 + distance_.window), rows_ / group_size_) * group_size_;
  }

  // Rows of `served` attend to the `count` tokens of a tile that starts at `position`, each to those that it sees.
  template <typename Tile>
  void attend(const Tile& tile, Range served, int position, int count, LinesAhead& ahead) const {
    const int first = std::max(served.begin, first_row_seeing(position));
    const int last = std::min(served.end, last_row_seeing(position + count)), rows = last - first;
    if (rows <= 0) return;
    const int steps = tile.steps(rows);
    const int lines_per_step = (ahead.left() + steps - 1) / steps;
    float* const scores = scores_ + first * kTileTokens;
    tile.score({q_ + first * q_width_, q_width_, rows, scores}, ahead, lines_per_step);
    hide_unseen(first, last, position, count);
    raise_largest(first, last, count);
    for (int row = first; row < last; ++row) exponentiate(row, round_up_to_lanes(count) / kLanes);
    tile.weigh({scores, decay_ + first, rows, sums_ + first * width_, width_}, ahead, lines_per_step);
  }

  void finish_partition(int row, const Partial& to) const {
    to.largest() = largest_[row];
    to.total() = sum(load(totals_ + row * kLanes));
    std::copy_n(sums_ + row * width_, width_, to.sums());
  }

 private:
  // How many tokens would stand before `position`, were there enough of them.
  [[nodiscard]] int tokens_before(int position) const {
    if (paths_ == nullptr) return std::max(0, position - first_position_);
    int tokens = 0;
    while (tokens < rows_ / group_size_ && paths_[tokens].position < position) ++tokens;
    return tokens;
  }
  [[nodiscard]] int position_of(int row) const {
    return paths_ == nullptr ? first_position_ + row / group_size_ : paths_[row / group_size_].position;
  }

  // Caps the scores of a tile, adds ALiBi's bias and hides what a row must not see.
  void hide_unseen(int first, int last, int position, int count) const {
    const int end = round_up_to_lanes(count);
    for (int row = first; row < last; ++row) {
      float* scores = scores_ + row * kTileTokens;
      const int own = position_of(row) - position;  // the row's own token, counted from the tile's first
      if (distance_.soft_cap > 0) cap(scores, distance_.soft_cap, end);
      if (distance_.slopes != nullptr) add_bias(scores, distance_.slopes[row % group_size_], own, end);
      hide(scores, std::min(count, own + 1) / kLanes * kLanes, end, 0, std::min(count, own + 1));
      const int behind = distance_.window == 0 ? 0 : own + 1 - distance_.window;  // tokens before the window
      if (behind > 0) hide(scores, 0, std::min(end, round_up_to_lanes(behind)), behind, count);
    }
  }

  static void cap(float* scores, float cap, int end) {
    for (int i = 0; i < end; i += kLanes) store(capped(load(scores + i), hn::Set(F32(), cap)), scores + i);
  }

  // scores[i] += slope * (i - own)
  static void add_bias(float* scores, float slope, int own, int end) {
    for (int i = 0; i < end; i += kLanes) {
      const Vector distance = hn::Iota(F32(), static_cast<float>(i - own));
      store(hn::MulAdd(hn::Set(F32(), slope), distance, load(scores + i)), scores + i);
    }
  }

  // Of scores [begin, end), whole vectors, those outside [seen_begin, seen_end) become kNoScore.
  static void hide(float* scores, int begin, int end, int seen_begin, int seen_end) {
    const Vector low = hn::Set(F32(), static_cast<float>(seen_begin)), none = hn::Set(F32(), kNoScore);
    const Vector high = hn::Set(F32(), static_cast<float>(seen_end));
    for (int i = begin; i < end; i += kLanes) {
      const Vector index = hn::Iota(F32(), static_cast<float>(i));
      const auto seen = hn::And(hn::Ge(index, low), hn::Lt(index, high));
      store(hn::IfThenElse(seen, load(scores + i), none), scores + i);
    }
  }

  // Updates m, and sets decay = exp(m - m').
  void raise_largest(int first, int last, int count) const {
    float* raised = decay_;
    for (int row = first; row < last; ++row) {
      const float* scores = scores_ + row * kTileTokens;
      Vector most = hn::Set(F32(), largest_[row]);
      for (int i = 0; i < round_up_to_lanes(count); i += kLanes) most = hn::Max(most, load(scores + i));
      raised[row] = hn::GetLane(hn::MaxOfLanes(F32(), most));
    }
    const int begin = first / kLanes * kLanes, end = round_up_to_lanes(last);
    std::copy(largest_ + begin, largest_ + first, raised + begin);
    std::copy(largest_ + last, largest_ + end, raised + last);
    for (int row = begin; row < end; row += kLanes) {
      const Vector next = load(raised + row);
      const Vector decay = exponential(hn::Sub(load(largest_ + row), next));
      store(next, largest_ + row);
      store(decay, decay_ + row);
    }
  }

  // scores = exp(scores - m); adds them to l.
  HWY_INLINE void exponentiate(int row, int vectors) const {
    float* scores = scores_ + row * kTileTokens;
    const Vector largest = hn::Set(F32(), largest_[row]);
    Vector total = hn::Mul(load(totals_ + row * kLanes), hn::Set(F32(), decay_[row]));
    for (int i = 0; i < vectors * kLanes; i += kLanes) {
      const Vector weight = exponential(hn::Sub(load(scores + i), largest));
      store(weight, scores + i);
      total = hn::Add(total, weight);
    }
    store(total, totals_ + row * kLanes);
  }

  static constexpr int kRowsBehind = std::max(0, kStoredTileRows - 1);  // of q and scores, which StoredTile may touch

  int head_dim_, q_width_, width_;  // q_width_, width_: of queries and of values, whole vectors
  int rows_ = 0, group_size_ = 1, first_position_ = 0;
  const TreePath* paths_ = nullptr;  // [tokens] in order of their positions, or null
  Distance distance_;
  float* largest_;  // [rows] m
  float* decay_;    // [rows]
  float* totals_;   // [rows, lanes] l, one part per lane
  float* scores_;   // [rows, kTileTokens]
  float* sums_;     // [rows, width] acc
  float* q_;        // [rows, q_width]
};

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
