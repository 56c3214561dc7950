#include "engine/quantize/output_error.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

namespace dculab::engine {
namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstMap = Eigen::Map<const RowMajor>;

constexpr Eigen::Index kRowsAtOnce = 64;

// trace(A H A^T) = sum over rows a of a H a^T.
[[nodiscard]] double energy(const RowMajor& rows, std::span<const float> hessian) {
  if (hessian.empty()) return rows.cast<double>().squaredNorm();
  const RowMajor product = rows * ConstMap(hessian.data(), rows.cols(), rows.cols());
  return product.cast<double>().cwiseProduct(rows.cast<double>()).sum();
}

}  // namespace

double relative_output_error(const WeightMatrix& weights, std::span<const float> quantized,
                             std::span<const float> hessian) {
  const ConstMap original(weights.values.data(), weights.rows, weights.columns);
  const ConstMap rounded(quantized.data(), weights.rows, weights.columns);
  double error = 0, signal = 0;
  for (Eigen::Index first = 0; first < weights.rows; first += kRowsAtOnce) {
    const Eigen::Index count = std::min<Eigen::Index>(kRowsAtOnce, weights.rows - first);
    error += energy(original.middleRows(first, count) - rounded.middleRows(first, count), hessian);
    signal += energy(original.middleRows(first, count), hessian);
  }
  return signal > 0 ? std::sqrt(std::max(0.0, error) / signal) : 0.0;
}

}  // namespace dculab::engine
