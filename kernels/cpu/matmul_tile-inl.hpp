// The inner loop of y = x w^T for a few rows of x against four rows of w, both contiguous along k.
//
// Lane j of a sum takes the products at k = j, j + lanes, j + 2 lanes, ... in this order, one fused multiply-add each,
// and the lanes are added last in a fixed order. Whatever the tiling, an element of y has the same bits.
#if defined(DCULAB_KERNELS_CPU_MATMUL_TILE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_MATMUL_TILE_INL_HPP_
#undef DCULAB_KERNELS_CPU_MATMUL_TILE_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_MATMUL_TILE_INL_HPP_
#endif

#include <hwy/cache_control.h>

#include <type_traits>

#include "kernels/cpu/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

constexpr int kTileColumns = 4;                               // rows of w
constexpr int kMaxTileRows = HWY_TARGET <= HWY_AVX3 ? 6 : 3;  // rows of x: sums, x and w fit in 32 or 16 registers
constexpr int kTileFloats = kMaxTileRows * kTileColumns * kLanes;

// Four rows of w; one that does not exist repeats another, and its result is dropped.
template <typename T>
using WeightRows = const T* [kTileColumns];

template <int kRows>
class TileSums {
 public:
  HWY_INLINE TileSums() {
    unrolled<kVectors>([&](auto i) DCULAB_INLINE { sums_[i] = hn::Zero(F32()); });
  }

  // sums += x[kRows, k] * w[4, k]^T, lane by lane.
  template <typename T>
  HWY_INLINE void add(const float* x, std::ptrdiff_t x_stride, const WeightRows<T>& w, int k) {
    add_from(0, x, x_stride, w, k);
  }

  // The same for rows of w that come from DRAM and follow one another: asks for what each row holds a little further on,
  // and near its end for the row that comes after these four.
  template <typename T>
  HWY_INLINE void add_streamed(const float* x, std::ptrdiff_t x_stride, const WeightRows<T>& w, int k) {
    constexpr int kLine = 64 / sizeof(T), kAhead = 1024 / sizeof(T);
    int i = 0;
    for (; i + kLine <= k; i += kLine) {
      const std::ptrdiff_t ahead = i + kAhead < k ? i + kAhead : i + kAhead + std::ptrdiff_t{kTileColumns - 1} * k;
      for (int c = 0; c < kTileColumns; ++c) hwy::Prefetch(w[c] + ahead);
      for (int j = i; j < i + kLine; j += kLanes) {
        add_vectors([&](int row) DCULAB_INLINE { return load(x + row * x_stride + j); },
                    [&](int c) DCULAB_INLINE { return load(w[c] + j); });
      }
    }
    add_from(i, x, x_stride, w, k);
  }

  // Between two blocks of k the sums rest in memory: [kRows, 4, lanes].
  HWY_INLINE void resume(const float* memory) {
    unrolled<kVectors>([&](auto i) DCULAB_INLINE { sums_[i] = load(memory + i * kLanes); });
  }
  HWY_INLINE void pause(float* memory) const {
    unrolled<kVectors>([&](auto i) DCULAB_INLINE { store(sums_[i], memory + i * kLanes); });
  }

  // Writes the first `columns` of each row to y.
  HWY_INLINE void finish(float* y, std::ptrdiff_t y_stride, int columns) const {
    unrolled<kRows>([&](auto row) DCULAB_INLINE {
      const Vector* sums = sums_ + row * kTileColumns;
      if (columns == kTileColumns) {
        sum_each(sums[0], sums[1], sums[2], sums[3], y + row * y_stride);
      } else {
        float lanes[kTileColumns];
        sum_each(sums[0], sums[1], sums[2], sums[3], lanes);
        std::memcpy(y + row * y_stride, lanes, sizeof(float) * static_cast<std::size_t>(columns));
      }
    });
  }

 private:
  template <class LoadX, class LoadW>
  HWY_INLINE void add_vectors(LoadX&& load_x, LoadW&& load_w) {
    Vector w[kTileColumns];
    unrolled<kTileColumns>([&](auto c) DCULAB_INLINE { w[c] = load_w(c); });
    unrolled<kRows>([&](auto row) DCULAB_INLINE {
      const Vector x = load_x(row);
      unrolled<kTileColumns>([&](auto c) DCULAB_INLINE {
        sums_[row * kTileColumns + c] = hn::MulAdd(x, w[c], sums_[row * kTileColumns + c]);
      });
    });
  }

  template <typename T>
  HWY_INLINE void add_from(int i, const float* x, std::ptrdiff_t x_stride, const WeightRows<T>& w, int k) {
    for (; i + kLanes <= k; i += kLanes) {
      add_vectors([&](int row) DCULAB_INLINE { return load(x + row * x_stride + i); },
                  [&](int c) DCULAB_INLINE { return load(w[c] + i); });
    }
    if (i < k) {
      add_vectors([&](int row) DCULAB_INLINE { return load_first(x + row * x_stride + i, k - i); },
                  [&](int c) DCULAB_INLINE { return load_first(w[c] + i, k - i); });
    }
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
