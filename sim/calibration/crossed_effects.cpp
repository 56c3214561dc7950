#include "sim/calibration/crossed_effects.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <unsupported/Eigen/LevenbergMarquardt>

#include "sim/calibration/huber.hpp"

namespace dculab::sim {
namespace {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

constexpr double kCoarseStep = 0.2;
constexpr double kFineStep = 1e-3;
constexpr double kGoodEnough = 1e-4;  // share of the loss that one more iteration must gain
constexpr int kEvaluations = 60;

[[nodiscard]] Eigen::Index at(std::size_t index) { return static_cast<Eigen::Index>(index); }

// x holds what groups add, in units of the priors' sigmas, where a row depends on it.
struct EffectProblem {
  const std::vector<CrossedGroup>& groups;
  const std::vector<std::vector<std::size_t>>& members;
  const RowValues& values;
  std::vector<std::ptrdiff_t> entry_of;  // [groups * figures]

  [[nodiscard]] std::size_t figures() const { return groups.front().sigma.size(); }
  [[nodiscard]] Eigen::Index size() const { return 1 + *std::ranges::max_element(entry_of); }

  [[nodiscard]] std::vector<double> theta(std::size_t row, const Vector& x) const {
    std::vector<double> sum(figures(), 0.0);
    for (const std::size_t group : members[row])
      for (std::size_t figure = 0; figure < figures(); ++figure)
        if (const auto entry = entry_of[group * figures() + figure]; entry >= 0)
          sum[figure] += x[entry] * groups[group].sigma[figure];
    return sum;
  }

  [[nodiscard]] std::vector<RowSlope> rows(const Vector& x, double step) const {
    std::vector<std::vector<double>> thetas;
    for (std::size_t row = 0; row < members.size(); ++row) thetas.push_back(theta(row, x));
    return values(thetas, step);
  }

  [[nodiscard]] Vector begin_at(const Effects& start) const {
    Vector x = Vector::Zero(size());
    for (std::size_t group = 0; group < groups.size(); ++group)
      if (const auto known = start.find(groups[group].name); known != start.end())
        for (std::size_t figure = 0; figure < figures(); ++figure)
          if (const auto entry = entry_of[group * figures() + figure]; entry >= 0)
            x[entry] = known->second[figure] / groups[group].sigma[figure];
    return x;
  }

  // Of one row: its slope by every entry of x.
  [[nodiscard]] Vector spread(std::size_t row, const RowSlope& value) const {
    Vector result = Vector::Zero(size());
    for (const std::size_t group : members[row])
      for (std::size_t figure = 0; figure < figures(); ++figure)
        if (const auto entry = entry_of[group * figures() + figure]; entry >= 0)
          result[entry] += value.slope[figure] * groups[group].sigma[figure];
    return result;
  }

  [[nodiscard]] Matrix curvature(const std::vector<RowSlope>& rows) const {
    Matrix slopes(rows.size(), size());
    for (std::size_t row = 0; row < rows.size(); ++row)
      slopes.row(at(row)) = std::sqrt(rows[row].count * huber_weight(rows[row].residual)) * spread(row, rows[row]);
    return Matrix::Identity(size(), size()) + slopes.transpose() * slopes;
  }

  // Of the loss: x, and what rows add to it. A search ends where it gains little, not where this is 0.
  [[nodiscard]] Vector gradient(const std::vector<RowSlope>& rows, const Vector& x) const {
    Vector sum = x;
    for (std::size_t row = 0; row < rows.size(); ++row) sum += pull(row, rows[row]);
    return sum;
  }

  // What one row adds to the gradient.
  [[nodiscard]] Vector pull(std::size_t row, const RowSlope& value) const {
    return value.count * huber_weight(value.residual) * value.residual * spread(row, value);
  }

  // Entries that no row depends on ahead of `x`: shares at the end of their range.
  [[nodiscard]] std::vector<bool> at_end(const Vector& x) const {
    Vector depends = Vector::Zero(size());
    const std::vector<RowSlope> ahead = rows(x, -kFineStep);
    for (std::size_t row = 0; row < ahead.size(); ++row) depends += spread(row, ahead[row]).cwiseAbs();
    std::vector<bool> ends;
    for (const double each : depends) ends.push_back(each == 0);
    return ends;
  }

  // One Gauss-Newton step of the loss without some rows; nuisances at 0. Where only those rows depend on an entry it is
  // 0 then, as its prior has it. Entries at the end of their range stay there if the other rows want them larger still.
  // `curvature` and `gradient`: with all rows.
  [[nodiscard]] Vector without(const std::vector<std::size_t>& left_out, const std::vector<RowSlope>& rows,
                               Matrix curvature, Vector gradient, const std::vector<bool>& ends, Vector x) const {
    for (const std::size_t row : left_out) {
      const double scale = rows[row].count * huber_weight(rows[row].residual);
      curvature.selfadjointView<Eigen::Lower>().rankUpdate(spread(row, rows[row]), -scale);
      gradient -= pull(row, rows[row]);
    }
    for (Eigen::Index entry = 0; entry < size(); ++entry) {
      if (!ends[static_cast<std::size_t>(entry)] || gradient[entry] > 0) continue;
      curvature.row(entry).setZero();
      curvature.col(entry).setZero();
      curvature(entry, entry) = 1;
      gradient[entry] = 0;
    }
    x -= Eigen::LLT<Matrix>(curvature).solve(gradient);
    for (std::size_t group = 0; group < groups.size(); ++group)
      for (std::size_t figure = 0; groups[group].is_nuisance && figure < figures(); ++figure)
        if (const auto entry = entry_of[group * figures() + figure]; entry >= 0) x[entry] = 0;
    return x;
  }
};

// As Eigen takes a problem: the rows' residuals, then x itself for the priors.
struct Residuals : Eigen::DenseFunctor<double> {
  const EffectProblem& problem;
  double step;

  Residuals(const EffectProblem& effects, double slopes_over)
      : DenseFunctor(static_cast<int>(effects.size()), static_cast<int>(effects.members.size() + effects.size())),
        problem(effects),
        step(slopes_over) {}

  int operator()(const Vector& x, Vector& residuals) const {
    const std::vector<RowSlope> rows = problem.rows(x, 0);
    for (std::size_t row = 0; row < rows.size(); ++row)
      residuals[at(row)] = std::sqrt(rows[row].count) * huber_residual(rows[row].residual);
    residuals.tail(x.size()) = x;
    return 0;
  }

  int df(const Vector& x, Matrix& jacobian) const {
    const std::vector<RowSlope> rows = problem.rows(x, step);
    for (std::size_t row = 0; row < rows.size(); ++row)
      jacobian.row(at(row)) =
          std::sqrt(rows[row].count) * huber_slope(rows[row].residual) * problem.spread(row, rows[row]);
    jacobian.bottomRows(x.size()).setIdentity();
    return 0;
  }
};

void minimise(const EffectProblem& problem, double step, Vector& x) {
  Residuals residuals(problem, step);
  Eigen::LevenbergMarquardt<Residuals> search(residuals);
  search.setFtol(kGoodEnough);
  search.setMaxfev(kEvaluations);
  search.minimize(x);
}

// Numbers those that some row depends on.
[[nodiscard]] std::vector<std::ptrdiff_t> number_entries(const EffectProblem& problem,
                                                         const std::vector<RowSlope>& rows) {
  const std::size_t figures = problem.figures();
  std::vector<std::ptrdiff_t> entry_of(problem.groups.size() * figures, -1);
  for (std::size_t row = 0; row < rows.size(); ++row)
    for (const std::size_t group : problem.members[row])
      for (std::size_t figure = 0; figure < figures; ++figure)
        if (rows[row].slope[figure] != 0 && problem.groups[group].sigma[figure] > 0)
          entry_of[group * figures + figure] = 0;
  std::ptrdiff_t next = 0;
  for (std::ptrdiff_t& entry : entry_of)
    if (entry == 0) entry = next++;
  return entry_of;
}

}  // namespace

CrossedEffects::CrossedEffects(std::vector<CrossedGroup> groups, std::vector<std::vector<std::size_t>> members,
                               const RowValues& values, const Effects& start)
    : groups_(std::move(groups)), members_(std::move(members)), figures_(groups_.front().sigma.size()) {
  EffectProblem problem{groups_, members_, values, std::vector<std::ptrdiff_t>(groups_.size() * figures_, -1)};
  problem.entry_of = entry_of_ = number_entries(problem, problem.rows(Vector(), kCoarseStep));
  Vector x = problem.begin_at(start);
  for (const double step : {kCoarseStep, kFineStep})
    if (x.size() > 0) minimise(problem, step, x);
  rows_ = problem.rows(x, kFineStep);
  curvature_.resize(static_cast<std::size_t>(x.size() * x.size()));
  Eigen::Map<Matrix>(curvature_.data(), x.size(), x.size()) = problem.curvature(rows_);
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    std::vector<double>& added = effects_[groups_[group].name];
    for (std::size_t figure = 0; figure < figures_; ++figure) {
      const auto entry = entry_of_[group * figures_ + figure];
      added.push_back(entry < 0 ? 0 : x[entry] * groups_[group].sigma[figure]);
    }
  }
}

std::vector<double> CrossedEffects::deviations(std::size_t index) const {
  const RowValues none;
  const EffectProblem problem{groups_, members_, none, entry_of_};
  const Eigen::LLT<Matrix> solver(Eigen::Map<const Matrix>(curvature_.data(), problem.size(), problem.size()));
  std::vector<double> deviations = groups_[index].sigma;
  for (std::size_t figure = 0; figure < figures_; ++figure)
    if (const auto entry = entry_of_[index * figures_ + figure]; entry >= 0)
      deviations[figure] *= std::sqrt(solver.solve(Vector::Unit(problem.size(), entry))[entry]);
  return deviations;
}

std::map<std::size_t, double> CrossedEffects::leave_out(const std::vector<std::size_t>& groups,
                                                        const RowValues& values) const {
  const EffectProblem problem{groups_, members_, values, entry_of_};
  const Eigen::Map<const Matrix> curvature(curvature_.data(), problem.size(), problem.size());
  const Vector optimum = problem.begin_at(effects_), gradient = problem.gradient(rows_, optimum);
  const std::vector<bool> ends = problem.at_end(optimum);
  std::map<std::size_t, double> residuals;
  std::vector<std::vector<double>> thetas(members_.size(), std::vector<double>(figures_, 0.0));
  for (const std::size_t left_out : groups) {
    std::vector<std::size_t> its_rows;
    for (std::size_t row = 0; row < members_.size(); ++row)
      if (std::ranges::find(members_[row], left_out) != members_[row].end()) its_rows.push_back(row);
    const Vector x = problem.without(its_rows, rows_, curvature, gradient, ends, optimum);
    for (const std::size_t row : its_rows) {
      thetas[row] = problem.theta(row, x);
      residuals[row] = 0;
    }
  }
  const std::vector<RowSlope> rows = values(thetas, 0);
  for (auto& [row, residual] : residuals) residual = rows[row].residual;
  return residuals;
}

}  // namespace dculab::sim
