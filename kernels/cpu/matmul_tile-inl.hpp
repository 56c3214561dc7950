// The inner loop of y = x w^T for a few rows of x against four rows of w, both contiguous along k.
//
// In each block of in-features (or pairs of them, see matmul_terms-inl.hpp), lane j of a sum takes the products
// at k = j, j + lanes, j + 2 lanes, ... in this order, one fused multiply-add each, and the lanes are added last in a
// fixed order. The sums of blocks are added in order. Whatever the tiling, an element of y has the same bits. Of FP8
// weights, the products of in-features that share a scale make a sum in each lane, which is multiplied by the scale and
// added to the lane's by another fused multiply-add.
#if defined(DCULAB_KERNELS_CPU_MATMUL_TILE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_MATMUL_TILE_INL_HPP_
#undef DCULAB_KERNELS_CPU_MATMUL_TILE_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_MATMUL_TILE_INL_HPP_
#endif

#include <type_traits>

#include "kernels/cpu/matmul_terms-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

constexpr int kTileColumns = 4;                               // rows of w
constexpr int kMaxTileRows = HWY_TARGET <= HWY_AVX3 ? 6 : 3;  // rows of x: sums, x and w fit in 32 or 16 registers

// Four rows of w; one that does not exist repeats another, and its result is dropped.
template <class Row>
using WeightRows = Row[kTileColumns];

template <class Terms, int kRows>
class TileSums {
 public:
  using X = typename Terms::X;

  HWY_INLINE TileSums() {
    unrolled<kVectors>([&](auto i) DCULAB_INLINE { sums_[i] = hn::Zero(F32()); });
  }

  // sums += x[kRows, begin ... end) * w[4, begin ... end)^T, lane by lane.
  template <class Row>
  HWY_INLINE void add(const X* x, std::ptrdiff_t x_stride, const WeightRows<Row>& w, int begin, int end) {
    int i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      add_vectors([&](int row) DCULAB_INLINE { return load(x + row * x_stride + i); },
                  [&](int c) DCULAB_INLINE { return w[c].load_at(i); });
    }
    if (i < end) {
      add_vectors([&](int row) DCULAB_INLINE { return load_first(x + row * x_stride + i, end - i); },
                  [&](int c) DCULAB_INLINE { return w[c].load_first_at(i, end - i); });
    }
  }

  // The same for rows of w, k long, that come from DRAM and follow one another: asks for what each row holds further
  // on, and near its end for the row that comes after these four. L2 is asked first, for a core waits for more lines
  // there than L1 can.
  template <class Row>
  HWY_INLINE void add_streamed(const X* x, std::ptrdiff_t x_stride, const WeightRows<Row>& w, int begin, int end,
                               int k) {
    constexpr int kBytes = sizeof(typename Row::Stored);
    constexpr int kLine = 64 / kBytes, kToL1 = 1024 / kBytes, kToL2 = 3072 / kBytes;
    const auto ahead = [k](int place)
                           DCULAB_INLINE { return place < k ? place : place + std::ptrdiff_t{kTileColumns - 1} * k; };
    int i = begin;
    for (; i + kLine <= end; i += kLine) {
      const std::ptrdiff_t near = ahead(i + std::min(kToL1, k)), far = ahead(i + std::min(kToL2, k));
      for (int c = 0; c < kTileColumns; ++c) prefetch_to_l1(w[c].values + near), prefetch_to_l2(w[c].values + far);
      for (int j = i; j < i + kLine;) j += add_vectors_at(x, x_stride, w, j);
    }
    add(x, x_stride, w, i, end);
  }

  // sums += the sums of a part whose weights have one scale for each of the four rows.
  HWY_INLINE void add_scaled(const TileSums& part, const WeightRows<Fp8Row>& w, int block) {
    unrolled<kVectors>([&](auto i) DCULAB_INLINE {
      const Vector scale = hn::Set(F32(), w[i % kTileColumns].scales[block]);
      sums_[i] = hn::MulAdd(part.sums_[i], scale, sums_[i]);
    });
  }

  // Writes the first `columns` of each row to y, or adds them to it.
  HWY_INLINE void finish(float* y, std::ptrdiff_t y_stride, int columns, bool add_to_y) const {
    unrolled<kRows>([&](auto row) DCULAB_INLINE {
      const Vector* sums = sums_ + row * kTileColumns;
      float* to = y + row * y_stride;
      if (columns == kTileColumns && !add_to_y) return sum_each(sums[0], sums[1], sums[2], sums[3], to);
      float lanes[kTileColumns];
      sum_each(sums[0], sums[1], sums[2], sums[3], lanes);
      for (int c = 0; c < columns; ++c) to[c] = add_to_y ? to[c] + lanes[c] : lanes[c];
    });
  }

 private:
  // One vector of each row, of FP8 two; how many in-features that were.
  template <class Row>
  HWY_INLINE int add_vectors_at(const X* x, std::ptrdiff_t x_stride, const WeightRows<Row>& w, int at) {
    if constexpr (kHasScales<Row>) {
      Vector first[kTileColumns], second[kTileColumns];
      unrolled<kTileColumns>([&](auto c) DCULAB_INLINE { load_weights(w[c].values + at, first[c], second[c]); });
      const auto add = [&](int place, const Vector* values) DCULAB_INLINE {
        add_vectors([&](int row) DCULAB_INLINE { return load(x + row * x_stride + place); },
                    [&](int c) DCULAB_INLINE { return values[c]; });
      };
      add(at, first), add(at + kLanes, second);
      return 2 * kLanes;
    } else {
      add_vectors([&](int row) DCULAB_INLINE { return load(x + row * x_stride + at); },
                  [&](int c) DCULAB_INLINE { return w[c].load_at(at); });
      return kLanes;
    }
  }

  template <class LoadX, class LoadW>
  HWY_INLINE void add_vectors(LoadX&& load_x, LoadW&& load_w) {
    Vector w[kTileColumns];
    unrolled<kTileColumns>([&](auto c) DCULAB_INLINE { w[c] = load_w(c); });
    unrolled<kRows>([&](auto row) DCULAB_INLINE {
      const Vector x = load_x(row);
      unrolled<kTileColumns>([&](auto c) DCULAB_INLINE {
        sums_[row * kTileColumns + c] = Terms::add(x, w[c], sums_[row * kTileColumns + c]);
      });
    });
  }

  static constexpr int kVectors = kRows * kTileColumns;
  Vector sums_[kVectors];  // [kRows, 4]
};

// Calls body(std::integral_constant<int, rows>) for rows in [1, kMaxTileRows].
template <int kRows = kMaxTileRows, typename Body>
HWY_INLINE void with_tile_rows(int rows, Body&& body) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return with_tile_rows<kRows - 1>(rows, body);
  }
  body(std::integral_constant<int, kRows>());
}

// Cuts `rows` of x into tiles of nearly equal height, none above kMaxTileRows: body(first row, rows).
template <typename Body>
HWY_INLINE void for_each_tile(int rows, Body&& body) {
  int tiles = (rows + kMaxTileRows - 1) / kMaxTileRows;
  for (int row = 0; tiles > 0; --tiles) {
    const int height = (rows - row + tiles - 1) / tiles;
    body(row, height);
    row += height;
  }
}

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
