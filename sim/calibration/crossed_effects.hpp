// Least squares over figures that groups of rows share: what a row sees is the sum of what its groups add.
//
//   theta(row) = sum over the row's groups of x(group)                     logarithms of factors, one for each figure
//   minimise     sum over rows huber(residual(theta))^2 + sum over groups and figures (x / sigma)^2
//
// With groups "every row", "its machine", "its software" this is a crossed hierarchical model: what all have in common
// is learned first, what one group adds is drawn towards 0 with its sigma, and a group that no row of the fit belongs
// to adds 0. Source: Gelman and Hill 2007, "Data Analysis Using Regression and Multilevel/Hierarchical Models",
// chapter 13. With one group it is a fit of the figures themselves. A figure on which no row of a group depends where
// the search begins is left alone.
//
// Minimised by Eigen's Levenberg-Marquardt (MINPACK's lmder), with slopes over a wide step first: where another split
// of a product or another bound takes over, a price has a kink, at which slopes over a narrow one get stuck.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace dculab::sim {

struct CrossedGroup {
  std::string name;
  std::vector<double> sigma;  // [figures] prior width of what it adds; 0: adds nothing
  bool is_nuisance = false;   // of how rows were measured: fitted, and no part of a prediction
};

using Effects = std::map<std::string, std::vector<double>>;  // by group: what it adds to each figure

// A row's residual, in sigmas, and its derivative by each figure.
struct RowSlope {
  double residual = 0;
  std::vector<double> slope;  // [figures]
  double count = 1;           // measurements that the row stands for
};

// What rows see at their thetas. Slopes are differences over `step` behind theta, ahead of it where `step` is negative;
// 0 leaves RowSlope::slope empty.
using RowValues = std::function<std::vector<RowSlope>(const std::vector<std::vector<double>>& thetas, double step)>;

class CrossedEffects {
 public:
  // `members[row]`: the groups that row belongs to, indices into `groups`. `start`: where the search begins, groups
  // that are not in it at 0.
  CrossedEffects(std::vector<CrossedGroup> groups, std::vector<std::vector<std::size_t>> members,
                 const RowValues& values, const Effects& start = {});

  [[nodiscard]] const Effects& effects() const { return effects_; }

  // Of what group `index` adds to each figure: one standard deviation of the posterior, the prior's where no row
  // depends on it.
  [[nodiscard]] std::vector<double> deviations(std::size_t index) const;

  // By row: the residual of its prediction, in sigmas, had the fit not seen the rows of its group among `groups`, of
  // which it belongs to one at most. What groups add is then taken to be one Gauss-Newton step away, with the rows'
  // weights as they are. `values`: as in the fit.
  [[nodiscard]] std::map<std::size_t, double> leave_out(const std::vector<std::size_t>& groups,
                                                        const RowValues& values) const;

  // Rows at the optimum.
  [[nodiscard]] const std::vector<RowSlope>& rows() const { return rows_; }

 private:
  Effects effects_;
  std::vector<CrossedGroup> groups_;
  std::vector<std::vector<std::size_t>> members_;
  std::vector<RowSlope> rows_;            // at the optimum
  std::vector<std::ptrdiff_t> entry_of_;  // [groups * figures] of x, -1: no row depends on it
  std::size_t figures_ = 0;
  std::vector<double> curvature_;  // [entries * entries] of the loss at the optimum, by columns
};

}  // namespace dculab::sim
