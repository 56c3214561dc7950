#include "sim/calibration/crossed_effects.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "sim/calibration/huber.hpp"

namespace dculab::sim {
namespace {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

constexpr int kIterations = 30;
constexpr double kGoodEnough = 1e-4;  // share of the loss that one more iteration must gain

[[nodiscard]] Eigen::Index at(std::size_t index) { return static_cast<Eigen::Index>(index); }

// The least-squares problem in one vector x of [groups * figures], in units of the priors' sigmas.
struct EffectProblem {
  const std::vector<CrossedGroup>& groups;
  const std::vector<std::vector<std::size_t>>& members;
  const RowValues& values;
  std::size_t figures;

  [[nodiscard]] std::size_t size() const { return groups.size() * figures; }

  [[nodiscard]] std::vector<std::vector<double>> thetas(const Vector& x) const {
    std::vector<std::vector<double>> result(members.size(), std::vector<double>(figures, 0.0));
    for (std::size_t row = 0; row < members.size(); ++row)
      for (const std::size_t group : members[row])
        for (std::size_t figure = 0; figure < figures; ++figure)
          result[row][figure] += x[at(group * figures + figure)] * groups[group].sigma[figure];
    return result;
  }

  [[nodiscard]] std::vector<RowSlope> rows(const Vector& x, bool slopes) const { return values(thetas(x), slopes); }

  [[nodiscard]] static double loss(const std::vector<RowSlope>& rows, const Vector& x) {
    double sum = x.squaredNorm();
    for (const RowSlope& row : rows) sum += huber_loss(row.residual);
    return sum;
  }

  // Of one row: its slope by every entry of x.
  [[nodiscard]] Vector spread(std::size_t row, const RowSlope& value) const {
    Vector result = Vector::Zero(at(size()));
    for (const std::size_t group : members[row])
      for (std::size_t figure = 0; figure < figures; ++figure)
        result[at(group * figures + figure)] += value.slope[figure] * groups[group].sigma[figure];
    return result;
  }

  void normal_equations(const std::vector<RowSlope>& rows, const Vector& x, Matrix& curvature, Vector& gradient) const {
    curvature = Matrix::Identity(at(size()), at(size()));
    gradient = x;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const Vector slope = spread(row, rows[row]);
      const double scale = huber_weight(rows[row].residual);
      curvature.selfadjointView<Eigen::Lower>().rankUpdate(slope, scale);
      gradient += scale * rows[row].residual * slope;
    }
    curvature.triangularView<Eigen::StrictlyUpper>() = curvature.transpose();
  }
};

// Levenberg-Marquardt from 0, the priors; `rows` ends as the values and slopes at the optimum, `curvature` as the
// loss's there.
[[nodiscard]] Vector minimise(const EffectProblem& problem, std::vector<RowSlope>& rows, Matrix& curvature) {
  Vector x = Vector::Zero(at(problem.size()));
  rows = problem.rows(x, true);
  double loss = EffectProblem::loss(rows, x);
  double damping = 1e-3;
  Vector gradient;
  problem.normal_equations(rows, x, curvature, gradient);
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    Matrix damped = curvature;
    damped.diagonal() *= 1 + damping;
    const Vector candidate = x - damped.ldlt().solve(gradient);
    const double gain = loss - EffectProblem::loss(problem.rows(candidate, false), candidate);
    if (!(gain > 0)) {
      damping *= 10;
      if (damping > 1e6) break;
      continue;
    }
    x = candidate;
    loss -= gain;
    damping = std::max(damping / 10, 1e-9);
    rows = problem.rows(x, true);
    problem.normal_equations(rows, x, curvature, gradient);
    if (gain < kGoodEnough * loss) break;
  }
  return x;
}

}  // namespace

CrossedEffects::CrossedEffects(std::vector<CrossedGroup> groups, std::vector<std::vector<std::size_t>> members,
                               const RowValues& values)
    : groups_(std::move(groups)), members_(std::move(members)), figures_(groups_.front().sigma.size()) {
  const EffectProblem problem{groups_, members_, values, figures_};
  Matrix curvature;
  const Vector x = minimise(problem, rows_, curvature);
  const Matrix inverse = curvature.ldlt().solve(Matrix::Identity(curvature.rows(), curvature.cols()));
  covariance_.assign(inverse.data(), inverse.data() + inverse.size());
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    std::vector<double>& added = effects_[groups_[group].name];
    for (std::size_t figure = 0; figure < figures_; ++figure)
      added.push_back(x[at(group * figures_ + figure)] * groups_[group].sigma[figure]);
  }
}

double CrossedEffects::variance(const std::vector<CrossedGroup>& groups, const std::vector<double>& slope) const {
  const auto size = at(groups_.size() * figures_);
  const Eigen::Map<const Matrix> covariance(covariance_.data(), size, size);
  Vector known = Vector::Zero(size);
  double unknown = 0;
  for (const CrossedGroup& group : groups) {
    const auto found = std::find_if(groups_.begin(), groups_.end(),
                                    [&group](const CrossedGroup& each) { return each.name == group.name; });
    for (std::size_t figure = 0; figure < figures_; ++figure) {
      const double moved = slope[figure] * group.sigma[figure];
      if (found == groups_.end())
        unknown += moved * moved;
      else
        known[at(static_cast<std::size_t>(found - groups_.begin()) * figures_ + figure)] += moved;
    }
  }
  return unknown + known.dot(covariance * known);
}

CrossedEffects::LeftOut CrossedEffects::leave_out(std::size_t index) const {
  const auto size = at(groups_.size() * figures_);
  const Eigen::Map<const Matrix> covariance(covariance_.data(), size, size);
  const RowValues none;
  const EffectProblem problem{groups_, members_, none, figures_};
  LeftOut left;
  Matrix curvature = covariance.inverse();
  Vector gradient = Vector::Zero(size);
  for (std::size_t row = 0; row < members_.size(); ++row) {
    if (std::find(members_[row].begin(), members_[row].end(), index) == members_[row].end()) continue;
    left.rows.push_back(row);
    const Vector slope = problem.spread(row, rows_[row]);
    const double scale = huber_weight(rows_[row].residual);
    curvature -= scale * slope * slope.transpose();
    gradient += scale * rows_[row].residual * slope;
  }
  const Eigen::LDLT<Matrix> solver(curvature);
  const Vector moved = solver.solve(gradient);  // x without the rows - x with them
  for (const std::size_t row : left.rows) {
    const Vector slope = problem.spread(row, rows_[row]);
    left.residual.push_back(rows_[row].residual + slope.dot(moved));
    left.deviation.push_back(std::sqrt(std::max(0.0, slope.dot(solver.solve(slope)))));
  }
  return left;
}

std::vector<double> CrossedEffects::leave_one_out_scores() const {
  const auto size = at(groups_.size() * figures_);
  const Eigen::Map<const Matrix> covariance(covariance_.data(), size, size);
  const RowValues none;
  const EffectProblem problem{groups_, members_, none, figures_};
  std::vector<double> scores;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    const Vector slope = problem.spread(row, rows_[row]);
    const double with_it = slope.dot(covariance * slope);
    // Sherman-Morrison: taking the row out of the curvature.
    const double left = 1 - std::min(0.999, huber_weight(rows_[row].residual) * with_it);
    scores.push_back(std::abs(rows_[row].residual / left) / std::sqrt(1 + with_it / left));
  }
  return scores;
}

}  // namespace dculab::sim
