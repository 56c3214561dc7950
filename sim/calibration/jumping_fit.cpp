#include "sim/calibration/jumping_fit.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "sim/calibration/huber.hpp"

namespace dculab::sim {
namespace {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

constexpr std::array kWidths{0.3, 0.15, 0.08, 0.04};  // of the slopes, in theta
constexpr double kLeastGain = 1e-3;                   // share of the loss for which a width is used again
constexpr int kMostSteps = 6;                         // with one width

// Figures are in units of their priors' sigmas.
class Search {
 public:
  Search(const ResidualsAt& residuals_at, const std::vector<double>& sigmas, const std::vector<double>& counts)
      : residuals_at_(residuals_at), sigmas_(sigmas), counts_(counts) {
    for (std::size_t figure = 0; figure < sigmas.size(); ++figure)
      if (sigmas[figure] > 0) free_.push_back(figure);
    best_ = Vector::Zero(static_cast<Eigen::Index>(free_.size()));
    residuals_ = residuals_at({theta_of(best_)}).front();
    loss_ = loss_of(best_, residuals_);
    for (const double width : kWidths)
      for (int step = 0; step < kMostSteps && improve(width); ++step) {
      }
  }

  [[nodiscard]] JumpingFit result() {
    JumpingFit fit{theta_of(best_), sigmas_};
    const Matrix inverse = curvature(slopes(kWidths[2])).inverse();
    for (std::size_t index = 0; index < free_.size(); ++index) {
      const auto at = static_cast<Eigen::Index>(index);
      fit.deviations[free_[index]] = sigmas_[free_[index]] * std::sqrt(std::min(1.0, inverse(at, at)));
    }
    return fit;
  }

 private:
  [[nodiscard]] std::vector<double> theta_of(const Vector& x) const {
    std::vector<double> theta(sigmas_.size(), 0.0);
    for (std::size_t index = 0; index < free_.size(); ++index)
      theta[free_[index]] = x[static_cast<Eigen::Index>(index)] * sigmas_[free_[index]];
    return theta;
  }

  [[nodiscard]] double loss_of(const Vector& x, const std::vector<double>& residuals) const {
    double loss = x.squaredNorm();
    for (std::size_t row = 0; row < residuals.size(); ++row) loss += counts_[row] * huber_loss(residuals[row]);
    return std::isfinite(loss) ? loss : std::numeric_limits<double>::infinity();
  }

  // [rows, figures] of the residuals by x, about the best.
  [[nodiscard]] Matrix slopes(double width) const {
    std::vector<std::vector<double>> thetas;
    for (std::size_t index = 0; index < free_.size(); ++index)
      for (const double side : {1.0, -1.0}) {
        thetas.push_back(theta_of(best_));
        thetas.back()[free_[index]] += side * width;
      }
    const auto residuals = residuals_at_(thetas);
    Matrix slope(residuals_.size(), best_.size());
    for (std::size_t index = 0; index < free_.size(); ++index)
      for (std::size_t row = 0; row < residuals_.size(); ++row) {
        const double change = residuals[2 * index][row] - residuals[2 * index + 1][row];
        slope(static_cast<Eigen::Index>(row), static_cast<Eigen::Index>(index)) =
            std::isfinite(change) ? change / (2 * width) * sigmas_[free_[index]] : 0;
      }
    return slope;
  }

  [[nodiscard]] Vector weights() const {
    Vector weights(residuals_.size());
    for (std::size_t row = 0; row < residuals_.size(); ++row)
      weights[static_cast<Eigen::Index>(row)] = counts_[row] * huber_weight(residuals_[row]);
    return weights;
  }

  [[nodiscard]] Matrix curvature(const Matrix& slope) const {
    return Matrix::Identity(best_.size(), best_.size()) + slope.transpose() * weights().asDiagonal() * slope;
  }

  // Whether the best of the steps that slopes over `width` suggest gains.
  [[nodiscard]] bool improve(double width) {
    const Matrix slope = slopes(width);
    const Matrix hessian = curvature(slope);
    const Vector pull = slope.transpose() * weights().cwiseProduct(Eigen::Map<const Vector>(
                                                residuals_.data(), static_cast<Eigen::Index>(residuals_.size())));
    const Vector gradient = best_ + pull;
    std::vector<Vector> candidates;
    for (const double damping : {0.0, 0.1, 1.0, 10.0}) {
      Matrix damped = hessian;
      damped.diagonal() *= 1 + damping;
      const Vector step = Eigen::LDLT<Matrix>(damped).solve(gradient);
      for (const double length : {1.0, 0.5, 0.2}) candidates.push_back(best_ - length * step);
    }
    return take_best(candidates);
  }

  [[nodiscard]] bool take_best(const std::vector<Vector>& candidates) {
    std::vector<std::vector<double>> thetas;
    for (const Vector& each : candidates) thetas.push_back(theta_of(each));
    const auto residuals = residuals_at_(thetas);
    const double before = loss_;
    for (std::size_t index = 0; index < candidates.size(); ++index) {
      const double loss = loss_of(candidates[index], residuals[index]);
      if (!(loss < loss_)) continue;
      loss_ = loss;
      best_ = candidates[index];
      residuals_ = residuals[index];
    }
    return loss_ < (1 - kLeastGain) * before;
  }

  const ResidualsAt& residuals_at_;
  const std::vector<double>& sigmas_;
  const std::vector<double>& counts_;
  std::vector<std::size_t> free_;
  Vector best_;
  std::vector<double> residuals_;
  double loss_ = 0;
};

}  // namespace

JumpingFit fit_jumping_rows(const ResidualsAt& residuals_at, const std::vector<double>& sigmas,
                            const std::vector<double>& counts) {
  return Search(residuals_at, sigmas, counts).result();
}

}  // namespace dculab::sim
