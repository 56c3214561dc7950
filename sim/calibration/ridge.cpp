#include "sim/calibration/ridge.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Core>

namespace dculab::sim {

std::vector<double> ridge(std::span<const LinearRow> rows, std::span<const double> priors) {
  const auto size = static_cast<Eigen::Index>(priors.size());
  const Eigen::Map<const Eigen::VectorXd> sigmas(priors.data(), size);
  Eigen::MatrixXd matrix = sigmas.cwiseInverse().cwiseAbs2().asDiagonal();
  Eigen::VectorXd right = Eigen::VectorXd::Zero(size);
  for (const LinearRow& row : rows) {
    const Eigen::VectorXd slope = Eigen::Map<const Eigen::VectorXd>(row.slope.data(), size) / row.sigma;
    matrix += slope * slope.transpose();
    right -= slope * (row.error / row.sigma);
  }
  const Eigen::VectorXd x = matrix.ldlt().solve(right);
  return {x.begin(), x.end()};
}

}  // namespace dculab::sim
