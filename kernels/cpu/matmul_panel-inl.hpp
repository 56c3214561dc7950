// The inner loop of y = x w^T for many rows of x: both factors packed, out-features in the lanes.
//
// It has the sums of matmul_tile-inl.hpp bit for bit. There, lane j of a sum takes the products at k = j, j + lanes,
// ... of a block and the lanes are added last; here, the same products make one sum per j (a phase), out-features side
// by side, and the sums of the phases are added in the same order.
#if defined(DCULAB_KERNELS_CPU_MATMUL_PANEL_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_MATMUL_PANEL_INL_HPP_
#undef DCULAB_KERNELS_CPU_MATMUL_PANEL_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_MATMUL_PANEL_INL_HPP_
#endif

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "kernels/cpu/matmul_tile-inl.hpp"
#include "kernels/cpu/transpose-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

constexpr int kPanelVectors = 2;                    // of out-features side by side
constexpr int kPanelRows = kPanelVectors * kLanes;  // rows of w
// Rows of x at a time: sums, one x and w fit in 32 or 16 registers; never more than a vector has lanes.
constexpr int kPanelTokens = HWY_TARGET <= HWY_AVX3 ? 14 : kLanes < 6 ? kLanes : 6;

// The order in which the phases are added, pairs first: the bits of `step` reversed.
constexpr int phase_at(int step) {
  int phase = 0;
  for (int bit = 1; bit < kLanes; bit *= 2) phase = 2 * phase + ((step & bit) != 0 ? 1 : 0);
  return phase;
}

// Vectors of a row of one block.
constexpr int phase_depth(int block) { return (block + kLanes - 1) / kLanes; }

// Floats from one step to the next of what is packed `depth` vectors deep, `width` rows side by side: the steps follow
// one another, set off by a row so that they do not all fall into the same set of a cache.
constexpr std::ptrdiff_t step_floats(int depth, int width) { return (std::ptrdiff_t{depth} + 1) * width; }

// Floats of a tile of x and of a panel of w.
constexpr std::ptrdiff_t tile_floats(int depth) { return kLanes * step_floats(depth, kLanes); }
constexpr std::ptrdiff_t panel_floats(int depth) { return kLanes * step_floats(depth, kPanelRows); }

// Of FP8 weights in a panel: where a block's scales are, [part, kPanelRows], and how many vectors of a row have one.
struct PanelScales {
  const float* values = nullptr;  // null: weights are as they are
  int vectors = 0;
};

// Rows [first, first + count) of the matrix, `depth` values of each from `begin` on, to
// out[step, vector of the row, kWords, kCount * lanes]. Rows that do not exist repeat the last, and their results are
// dropped; values that do not exist are 0.
template <class Terms, int kCount, class Matrix>
HWY_INLINE void pack_rows(const Matrix& matrix, int first, int count, int begin, int depth, float* out,
                          std::ptrdiff_t step_floats) {
  for (int i = 0; i < depth; i += kLanes, out += Terms::kWords * kCount * kLanes) {
    for (int side = 0; side < kCount * kLanes; side += kLanes) {
      const auto row = [&](int lane) DCULAB_INLINE { return matrix.row(first + std::min(side + lane, count - 1)); };
      Vector v[kLanes];
      if (depth - i >= kLanes) {
        unrolled<kLanes>([&](auto lane) DCULAB_INLINE { v[lane] = row(lane).load_at(begin + i); });
      } else {
        for (int lane = 0; lane < kLanes; ++lane) v[lane] = row(lane).load_first_at(begin + i, depth - i);
      }
      transpose(v);
      unrolled<kLanes>([&](auto step) DCULAB_INLINE {
        unrolled<Terms::kWords>([&](auto word) DCULAB_INLINE {
          store(Terms::template word<word>(v[phase_at(step)]),
                out + step * step_floats + word * kCount * kLanes + side);
        });
      });
    }
  }
}

// y[kTokens, kPanelRows] of one phase.
template <class Terms, int kTokens>
class PhaseSums {
 public:
  static constexpr int kFloats = kTokens * kPanelRows;

  HWY_INLINE PhaseSums() {
    unrolled<kVectors>([&](auto i) DCULAB_INLINE { sums_[i] = hn::Zero(F32()); });
  }

  // sums += x[depth, lanes]^T * w[depth, kPanelRows]; x may come from L3, and tiles of it follow one another.
  HWY_INLINE void add(const float* x, const float* w, int depth) {
    constexpr int kAhead = 2048 / sizeof(float);
    for (int i = 0; i < depth; ++i, x += kLanes, w += kPanelRows) {
      prefetch_to_l1(x + kAhead);
      Vector rows[kPanelVectors];
      unrolled<kPanelVectors>([&](auto v) DCULAB_INLINE { rows[v] = load(w + v * kLanes); });
      unrolled<kTokens>([&](auto t) DCULAB_INLINE {
        const Vector token = hn::Set(F32(), x[t]);
        unrolled<kPanelVectors>([&](auto v) DCULAB_INLINE {
          Vector& mine = sums_[t * kPanelVectors + v];
          mine = Terms::add(token, rows[v], mine);
        });
      });
    }
  }

  // The same for weights of which every `scales.vectors` have a scale for each row: those are added up first.
  HWY_INLINE void add(const float* x, const float* w, int depth, const PanelScales& scales) {
    const float* scale = scales.values;
    for (int i = 0; i < depth; i += scales.vectors, scale += kPanelRows) {
      PhaseSums part;
      part.add(x + i * kLanes, w + i * kPanelRows, std::min(scales.vectors, depth - i));
      unrolled<kVectors>([&](auto sum) DCULAB_INLINE {
        sums_[sum] = hn::MulAdd(part.sums_[sum], load(scale + sum % kPanelVectors * kLanes), sums_[sum]);
      });
    }
  }

  HWY_INLINE void add(const float* sums) {
    unrolled<kVectors>([&](auto i) DCULAB_INLINE { sums_[i] = hn::Add(sums_[i], load(sums + i * kLanes)); });
  }
  HWY_INLINE void write(float* sums) const {
    unrolled<kVectors>([&](auto i) DCULAB_INLINE { store(sums_[i], sums + i * kLanes); });
  }

 private:
  static constexpr int kVectors = kTokens * kPanelVectors;
  Vector sums_[kVectors];
};

// Where a product goes: y[tokens, columns].
struct OutputTile {
  float* y;
  std::ptrdiff_t stride;
  int columns;

  HWY_INLINE void prefetch(int tokens) const {
    for (int t = 0; t < tokens; ++t) {
      for (int c = 0; c < columns; c += kLanes) __builtin_prefetch(y + t * stride + c, 1);
    }
  }
  HWY_INLINE void write(const float* sums, int tokens, bool add_to_y) const {
    for (int t = 0; t < tokens; ++t) {
      for (int c = 0; c < columns; c += kLanes) {
        float* to = y + t * stride + c;
        const Vector sum = load(sums + t * kPanelRows + c);
        store_first(add_to_y ? hn::Add(load_first(to, columns - c), sum) : sum, to, columns - c);
      }
    }
  }
};

// The product of one block of a tile of x and a panel of w.
template <class Terms, int kTokens>
HWY_NOINLINE void multiply_phases(const float* x, const float* w, int depth, const PanelScales& scales,
                                  const OutputTile& out, bool add_to_y) {
  constexpr int kFloats = PhaseSums<Terms, kTokens>::kFloats;
  HWY_ALIGN float waiting[4 * kFloats];  // sums that wait for their partner: at most one each of 8, 4, 2 and 1 phases
  float* next = waiting;
  out.prefetch(kTokens);
  for (int step = 0; step < kLanes; ++step, x += step_floats(depth, kLanes), w += step_floats(depth, kPanelRows)) {
    PhaseSums<Terms, kTokens> sums;
    if (scales.values != nullptr) {
      sums.add(x, w, depth, scales);
    } else {
      sums.add(x, w, depth);
    }
    for (int pairs = step; pairs % 2 == 1; pairs /= 2) sums.add(next -= kFloats);
    sums.write(next);
    next += kFloats;
  }
  out.write(waiting, kTokens, add_to_y);
}

// Calls body(std::integral_constant<int, tokens>) for tokens in [1, kPanelTokens].
template <int kTokens = kPanelTokens, typename Body>
HWY_INLINE void with_panel_tokens(int tokens, Body&& body) {
  if constexpr (kTokens > 1) {
    if (tokens < kTokens) return with_panel_tokens<kTokens - 1>(tokens, body);
  }
  body(std::integral_constant<int, kTokens>());
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
