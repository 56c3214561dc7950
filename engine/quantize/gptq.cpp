#include "engine/quantize/gptq.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <exception>
#include <numeric>

#include "core/error.hpp"

namespace dculab::engine {
namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstMap = Eigen::Map<const RowMajor>;

constexpr int kBlockColumns = 128;  // the paper's
constexpr int kRowsPerTask = 32;
constexpr double kSmallestPivot = 1e-6;  // of the mean of the diagonal

// Where the block that begins at `first` ends: whole groups when they are small, else cut at the end of a group, so
// that a group never begins within a block whose corrections have not reached all of it.
[[nodiscard]] int block_end(int first, int columns, int group_size) {
  if (group_size <= kBlockColumns)
    return std::min(columns, first + std::max(1, kBlockColumns / group_size) * group_size);
  return std::min(first + kBlockColumns, (first / group_size + 1) * group_size);
}

// Some rows of the matrix on their way through the columns.
class RowSlice {
 public:
  RowSlice(const WeightMatrix& weights, const InverseFactor& factor, const GridOptions& grid,
           kernels::QuantizedMatrix& out, int first_row)
      : factor_(factor),
        upper_(factor.upper.data(), factor.columns, factor.columns),
        grid_(grid),
        out_(out),
        first_row_(first_row),
        weights_(std::min(kRowsPerTask, weights.rows - first_row), weights.columns) {
    for (Eigen::Index row = 0; row < weights_.rows(); ++row)
      for (Eigen::Index place = 0; place < weights_.cols(); ++place)
        weights_(row, place) = weights.values[index(row, weights.columns) +
                                              static_cast<std::size_t>(factor.order[static_cast<std::size_t>(place)])];
  }

  void quantize() {
    const int columns = factor_.columns;
    for (int first = 0; first < columns;) {
      const int end = block_end(first, columns, out_.group_size);
      RowMajor errors(weights_.rows(), end - first);
      for (Eigen::Index row = 0; row < weights_.rows(); ++row) quantize_block(row, first, end, errors);
      if (end < columns)
        weights_.rightCols(columns - end).noalias() -= errors * upper_.block(first, end, end - first, columns - end);
      first = end;
    }
  }

 private:
  [[nodiscard]] std::size_t index(Eigen::Index row, int width) const {
    return static_cast<std::size_t>(first_row_ + row) * static_cast<std::size_t>(width);
  }

  void quantize_block(Eigen::Index row, int first, int end, RowMajor& errors) {
    float* const values = &weights_(row, 0);
    for (int place = first; place < end; ++place)
      if (place % out_.group_size == 0) start_group(row, place);
    for (int place = first; place < end; ++place) {
      const std::size_t group_at = group_index(row, place);
      const Grid grid{out_.scales[group_at], out_.zeros[group_at]};
      const std::uint8_t q = to_integer(values[place], grid, grid_.bits);
      out_.q[index(row, out_.columns) + static_cast<std::size_t>(factor_.order[static_cast<std::size_t>(place)])] = q;
      const float error = (values[place] - to_weight(q, grid)) / upper_(place, place);
      errors(row, place - first) = error;
      const float* const corrections = upper_.data() + static_cast<Eigen::Index>(place) * upper_.cols();
      for (int later = place + 1; later < end; ++later) values[later] -= error * corrections[later];
    }
  }

  [[nodiscard]] std::size_t group_index(Eigen::Index row, int place) const {
    return index(row, out_.groups()) + static_cast<std::size_t>(place / out_.group_size);
  }

  void start_group(Eigen::Index row, int place) {
    const Grid grid = find_grid({&weights_(row, place), static_cast<std::size_t>(out_.group_size)}, grid_);
    out_.scales[group_index(row, place)] = grid.scale;
    out_.zeros[group_index(row, place)] = static_cast<std::uint8_t>(grid.zero);
  }

  const InverseFactor& factor_;
  ConstMap upper_;
  const GridOptions& grid_;
  kernels::QuantizedMatrix& out_;
  int first_row_;
  RowMajor weights_;  // [rows of the task, columns], in the factor's order
};

[[nodiscard]] std::vector<std::int32_t> column_order(std::span<const float> hessian, int columns, ColumnOrder order) {
  std::vector<std::int32_t> places(static_cast<std::size_t>(columns));
  std::iota(places.begin(), places.end(), 0);
  if (order == ColumnOrder::as_stored) return places;
  const auto diagonal = [&](std::int32_t column) {
    return hessian[static_cast<std::size_t>(column) * (static_cast<std::size_t>(columns) + 1)];
  };
  std::ranges::stable_sort(places, [&](std::int32_t a, std::int32_t b) { return diagonal(a) > diagonal(b); });
  return places;
}

// The Hessian in the order of the columns, last first, so that the Cholesky factor of what comes out, turned round
// again, is the R of H = R R^T with R upper triangular; then U = R^-1.
[[nodiscard]] Eigen::MatrixXd reversed(std::span<const float> hessian, const InverseFactor& factor) {
  const Eigen::Index columns = factor.columns;
  Eigen::MatrixXd result(columns, columns);
  const auto place = [&](Eigen::Index i) {
    return static_cast<std::size_t>(factor.order[static_cast<std::size_t>(columns - 1 - i)]);
  };
  for (Eigen::Index j = 0; j < columns; ++j)
    for (Eigen::Index i = 0; i < columns; ++i)
      result(i, j) = hessian[place(i) * static_cast<std::size_t>(columns) + place(j)];
  return result;
}

}  // namespace

InverseFactor factor_inverse(std::span<const float> hessian, int columns, ColumnOrder order, double damp) {
  InverseFactor factor;
  factor.columns = columns;
  factor.order = column_order(hessian, columns, order);
  Eigen::MatrixXd matrix = reversed(hessian, factor);
  for (Eigen::Index i = 0; i < columns; ++i) {
    if (matrix(i, i) != 0) continue;
    matrix(i, i) = 1;
    ++factor.dead_columns;
  }
  matrix.diagonal().array() += damp * matrix.diagonal().mean();
  const Eigen::LLT<Eigen::MatrixXd> cholesky(matrix);
  // A pivot of a nearly singular matrix is nothing but the rounding of its F32 sums.
  const double smallest = cholesky.info() == Eigen::Success ? cholesky.matrixLLT().diagonal().minCoeff() : 0.0;
  if (!(smallest * smallest > kSmallestPivot * matrix.diagonal().mean()))
    throw InputError(
        "the Hessian is singular: the calibration text leaves too many directions open; use more text, or "
        "a larger --damp");
  const Eigen::MatrixXd r = cholesky.matrixL().toDenseMatrix().reverse();
  const Eigen::MatrixXd u = r.triangularView<Eigen::Upper>().solve(Eigen::MatrixXd::Identity(columns, columns));
  factor.upper.resize(static_cast<std::size_t>(columns) * static_cast<std::size_t>(columns));
  Eigen::Map<RowMajor>(factor.upper.data(), columns, columns) = u.cast<float>();
  return factor;
}

kernels::QuantizedMatrix gptq(kernels::cpu::ThreadPool& threads, const WeightMatrix& weights,
                              const InverseFactor& factor, const GridOptions& grid, int group_size) {
  kernels::QuantizedMatrix matrix = make_quantized(weights, grid, group_size);
  const int tasks = (weights.rows + kRowsPerTask - 1) / kRowsPerTask;
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(tasks));
  threads.parallel_for(tasks, [&](int task, int) {
    try {
      RowSlice(weights, factor, grid, matrix, task * kRowsPerTask).quantize();
    } catch (...) {
      failures[static_cast<std::size_t>(task)] = std::current_exception();
    }
  });
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  if (!std::ranges::is_sorted(factor.order)) {
    matrix.g_idx.resize(static_cast<std::size_t>(weights.columns));
    for (int place = 0; place < weights.columns; ++place)
      matrix.g_idx[static_cast<std::size_t>(factor.order[static_cast<std::size_t>(place)])] = place / group_size;
  }
  if (std::ranges::is_sorted(matrix.g_idx)) matrix.g_idx.clear();
  return matrix;
}

}  // namespace dculab::engine
