// A product, and the rows of its matrices that a task takes.
#if defined(DCULAB_KERNELS_CPU_MATMUL_PIECES_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef DCULAB_KERNELS_CPU_MATMUL_PIECES_INL_HPP_
#undef DCULAB_KERNELS_CPU_MATMUL_PIECES_INL_HPP_
#else
#define DCULAB_KERNELS_CPU_MATMUL_PIECES_INL_HPP_
#endif

#include <algorithm>
#include <cstddef>

#include "kernels/cpu/vectors-inl.hpp"
#include "kernels/ops.hpp"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu::HWY_NAMESPACE {

inline int total_rows(const MatmulArgs& args) {
  int rows = 0;
  for (int i = 0; i < args.num_weights; ++i) rows += args.weights[static_cast<std::size_t>(i)].rows;
  return rows;
}

// Rows [first, first + rows) of one of the matrices; their products are columns [column, column + rows) of y.
struct Piece {
  const WeightView& weight;
  const float* bias;  // of the first row, or null
  int first, rows, column;
};

// Calls body(piece) for the matrices in rows [begin, end) of all of them together.
template <typename Body>
void for_each_piece(const MatmulArgs& args, int begin, int end, Body&& body) {
  int base = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(args.num_weights); ++i) {
    const WeightView& weight = args.weights[i];
    const int first = std::max(begin, base), last = std::min(end, base + weight.rows);
    if (first < last) {
      const float* bias = args.biases[i] == nullptr ? nullptr : args.biases[i] + (first - base);
      body(Piece{weight, bias, first - base, last - first, first});
    }
    base += weight.rows;
  }
}

// y[:, columns of the piece] += bias, once the products are there.
inline void add_bias(const MatmulArgs& args, const Piece& piece, int y_stride) {
  if (piece.bias == nullptr) return;
  for (int row = 0; row < args.m; ++row) {
    float* y = args.y + std::ptrdiff_t{row} * y_stride + piece.column;
    for (int i = 0; i < piece.rows; i += kLanes) {
      const int left = piece.rows - i;
      store_first(hn::Add(load_first(y + i, left), load_first(piece.bias + i, left)), y + i, left);
    }
  }
}

// A product, and its activations in the form that the terms take.
template <class Terms>
struct Product {
  using X = typename Terms::X;

  const MatmulArgs& args;
  const X* x;  // [m, k]
  int k;
};

}  // namespace dculab::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
