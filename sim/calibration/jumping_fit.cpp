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

constexpr std::array kWalked{-3.0, -1.5, 1.5, 3.0};  // standard deviations by the curvature
constexpr int kCorrections = 2;
constexpr double kBetter = 0.1;    // less loss than the search found, for which it goes on from there
constexpr double kConfounded = 2;  // times as well known with the others held
constexpr int kMostWalks = 2;
constexpr double kLeastTime = 0.05;  // of itself, that a walk leaves of a time

// By how much theta changes where the time changes by `change` of itself, to first order theta's own change.
[[nodiscard]] double moved_by(TimeLaw law, double change) {
  switch (law) {
    case TimeLaw::inverse:
      return -std::log(std::max(kLeastTime, 1 - change));
    case TimeLaw::proportional:
      return std::log(std::max(kLeastTime, 1 + change));
    case TimeLaw::added:
      return change;
  }
  return change;
}

// Figures are in units of their priors' sigmas.
class Search {
 public:
  Search(const ResidualsAt& residuals_at, const std::vector<JumpingFigure>& figures, const std::vector<double>& counts)
      : residuals_at_(residuals_at), figures_(figures), counts_(counts) {
    for (std::size_t figure = 0; figure < figures.size(); ++figure)
      if (figures[figure].sigma > 0) free_.push_back(figure);
    best_ = Vector::Zero(size());
    residuals_ = residuals_at({theta_of(best_)}).front();
    loss_ = loss_of(best_, residuals_);
    descend();
  }

  [[nodiscard]] std::vector<KnownFigure> result() {
    for (int walk = 1;; ++walk) {
      const Matrix slope = slopes(kWidths.front());
      const Matrix hessian = curvature(slope);
      const Matrix covariance = hessian.inverse();
      if (walk_from_best(slope, covariance) > kBetter && walk < kMostWalks)
        descend();
      else
        return known(hessian, covariance);
    }
  }

 private:
  struct Place {
    Vector x;
    double loss = 0;
    std::vector<double> residuals{};
  };

  [[nodiscard]] Eigen::Index size() const { return static_cast<Eigen::Index>(free_.size()); }
  [[nodiscard]] const JumpingFigure& figure(Eigen::Index at) const {
    return figures_[free_[static_cast<std::size_t>(at)]];
  }

  [[nodiscard]] std::vector<double> theta_of(const Vector& x) const {
    std::vector<double> theta(figures_.size(), 0.0);
    for (Eigen::Index at = 0; at < size(); ++at) theta[free_[static_cast<std::size_t>(at)]] = x[at] * figure(at).sigma;
    return theta;
  }

  // Straight in times.
  [[nodiscard]] Vector moved(const Vector& from, const Vector& step) const {
    Vector x = from;
    for (Eigen::Index at = 0; at < size(); ++at)
      x[at] += moved_by(figure(at).law, step[at] * figure(at).sigma) / figure(at).sigma;
    return x;
  }

  [[nodiscard]] double loss_of(const Vector& x, const std::vector<double>& residuals) const {
    double loss = x.squaredNorm();
    for (std::size_t row = 0; row < residuals.size(); ++row) loss += counts_[row] * huber_loss(residuals[row]);
    return std::isfinite(loss) ? loss : std::numeric_limits<double>::infinity();
  }

  [[nodiscard]] std::vector<Place> evaluated(const std::vector<Vector>& xs) {
    std::vector<std::vector<double>> thetas;
    for (const Vector& x : xs) thetas.push_back(theta_of(x));
    std::vector<std::vector<double>> residuals = residuals_at_(thetas);
    std::vector<Place> places;
    for (std::size_t index = 0; index < xs.size(); ++index) {
      const double loss = loss_of(xs[index], residuals[index]);
      tried_.push_back({xs[index], loss});
      places.push_back({xs[index], loss, std::move(residuals[index])});
    }
    return places;
  }

  // [rows, figures] of the residuals by x, about the best.
  [[nodiscard]] Matrix slopes(double width) {
    std::vector<Vector> ends;
    for (Eigen::Index at = 0; at < size(); ++at)
      for (const double side : {1.0, -1.0}) {
        ends.push_back(best_);
        ends.back()[at] += side * width / figure(at).sigma;
      }
    const std::vector<Place> sides = evaluated(ends);
    Matrix slope(residuals_.size(), size());
    for (Eigen::Index at = 0; at < size(); ++at)
      for (std::size_t row = 0; row < residuals_.size(); ++row) {
        const std::size_t ahead = 2 * static_cast<std::size_t>(at);
        const double change = sides[ahead].residuals[row] - sides[ahead + 1].residuals[row];
        slope(static_cast<Eigen::Index>(row), at) = std::isfinite(change) ? change / (2 * width) * figure(at).sigma : 0;
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
    return Matrix::Identity(size(), size()) + slope.transpose() * weights().asDiagonal() * slope;
  }

  void descend() {
    for (const double width : kWidths)
      for (int step = 0; step < kMostSteps && improve(width); ++step) {
      }
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
      for (const double length : {1.0, 0.5, 0.2}) candidates.push_back(moved(best_, -length * step));
    }
    const double before = loss_;
    return take_best(evaluated(candidates)) > kLeastGain * before;
  }

  // By how much the loss is less than before.
  double take_best(const std::vector<Place>& places) {
    const double before = loss_;
    for (const Place& place : places) {
      if (!(place.loss < loss_)) continue;
      loss_ = place.loss;
      best_ = place.x;
      residuals_ = place.residuals;
    }
    return before - loss_;
  }

  // Along the lines on which the others make up for each figure best, and back to where they do. Returns what the best
  // place gains.
  double walk_from_best(const Matrix& slope, const Matrix& covariance) {
    std::vector<Vector> ends;
    for (Eigen::Index at = 0; at < size(); ++at)
      for (const double deviations : kWalked)
        ends.push_back(moved(best_, deviations * covariance.col(at) / std::sqrt(covariance(at, at))));
    std::vector<Place> places = evaluated(ends);
    for (int round = 0; round < kCorrections; ++round) {
      for (std::size_t index = 0; index < places.size(); ++index)
        ends[index] = moved(places[index].x, correction(places[index], slope, index / kWalked.size()));
      std::vector<Place> corrected = evaluated(ends);
      for (std::size_t index = 0; index < places.size(); ++index)
        if (corrected[index].loss < places[index].loss) places[index] = std::move(corrected[index]);
    }
    return take_best(places);
  }

  // The Gauss-Newton step of all figures but one.
  [[nodiscard]] Vector correction(const Place& place, const Matrix& slope, std::size_t held) const {
    Matrix hessian = curvature(slope);
    Vector gradient =
        place.x + slope.transpose() * weights().cwiseProduct(Eigen::Map<const Vector>(
                                          place.residuals.data(), static_cast<Eigen::Index>(place.residuals.size())));
    const auto at = static_cast<Eigen::Index>(held);
    hessian.row(at).setZero();
    hessian.col(at).setZero();
    hessian(at, at) = 1;
    gradient[at] = 0;
    return -Eigen::LDLT<Matrix>(hessian).solve(gradient);
  }

  // The largest move from the best among all that was tried, scaled to a loss of 1 more: others may do as well, none
  // of the tried ones better.
  [[nodiscard]] double deviation(Eigen::Index at) const {
    double most = 0;
    for (const Place& place : tried_)
      most = std::max(most, std::abs(place.x[at] - best_[at]) / std::sqrt(std::max(1.0, place.loss - loss_)));
    return std::min(1.0, most);
  }

  [[nodiscard]] std::vector<KnownFigure> known(const Matrix& hessian, const Matrix& covariance) const {
    std::vector<KnownFigure> found;
    for (const JumpingFigure& each : figures_) found.push_back({.deviation = each.sigma});
    for (Eigen::Index at = 0; at < size(); ++at) {
      KnownFigure& known = found[free_[static_cast<std::size_t>(at)]];
      known.theta = best_[at] * figure(at).sigma;
      known.deviation = figure(at).sigma * deviation(at);
      if (covariance(at, at) * hessian(at, at) >= kConfounded * kConfounded)
        known.confounded_with = free_[partner(covariance, at)];
    }
    return found;
  }

  // With which it is correlated most.
  [[nodiscard]] std::size_t partner(const Matrix& covariance, Eigen::Index of) const {
    Vector shared = covariance.col(of).cwiseAbs2().cwiseQuotient(covariance.diagonal());
    shared[of] = 0;
    Eigen::Index most = 0;
    shared.maxCoeff(&most);
    return static_cast<std::size_t>(most);
  }

  const ResidualsAt& residuals_at_;
  const std::vector<JumpingFigure>& figures_;
  const std::vector<double>& counts_;
  std::vector<std::size_t> free_;
  Vector best_;
  std::vector<double> residuals_;
  double loss_ = 0;
  std::vector<Place> tried_;  // without residuals
};

}  // namespace

std::vector<KnownFigure> fit_jumping_rows(const ResidualsAt& residuals_at, const std::vector<JumpingFigure>& figures,
                                          const std::vector<double>& counts) {
  return Search(residuals_at, figures, counts).result();
}

}  // namespace dculab::sim
