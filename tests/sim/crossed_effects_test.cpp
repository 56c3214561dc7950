// Crossed effects on linear problems, where the answer is known.
#include "sim/calibration/crossed_effects.hpp"

#include <cmath>

#include "tests/support/catch.hpp"

namespace dculab::sim {
namespace {

constexpr double kSigma = 0.1;

// Rows of two figures: y = a + b z, residual (theta_a + theta_b z - y) / sigma.
struct Line {
  std::vector<double> z, y;

  [[nodiscard]] RowValues values() const {
    return [this](const std::vector<std::vector<double>>& thetas, double step) {
      std::vector<RowSlope> rows;
      for (std::size_t row = 0; row < y.size(); ++row) {
        RowSlope& each = rows.emplace_back();
        each.residual = (thetas[row][0] + thetas[row][1] * z[row] - y[row]) / kSigma;
        if (step != 0) each.slope = {1 / kSigma, z[row] / kSigma};
      }
      return rows;
    };
  }
};

// Machines 1 to 3 and programs a, b, each pair measured at four z.
struct Planted {
  std::vector<CrossedGroup> groups{{"all", {10, 10}}, {"m1", {1, 1}}, {"m2", {1, 1}},
                                   {"m3", {1, 1}},    {"a", {1, 1}},  {"b", {1, 1}}};
  std::vector<std::vector<std::size_t>> members;
  Line line;

  explicit Planted(std::size_t machines = 3) {
    const double machine_adds[] = {0.0, 0.4, -0.4};
    const double program_adds[] = {0.5, -0.5};
    for (std::size_t machine = 0; machine < machines; ++machine)
      for (std::size_t program = 0; program < 2; ++program)
        for (const double z : {0.0, 1.0, 2.0, 3.0}) {
          members.push_back({0, 1 + machine, 4 + program});
          line.z.push_back(z);
          line.y.push_back(2 + machine_adds[machine] + (1 + program_adds[program]) * z);
        }
    if (machines < 3) {
      groups.erase(groups.begin() + 3);
      for (std::vector<std::size_t>& of_row : members) of_row[2] -= 1;
    }
  }
};

double sum(const CrossedEffects& fit, std::initializer_list<const char*> names, std::size_t figure) {
  double total = 0;
  for (const char* name : names) total += fit.effects().at(name)[figure];
  return total;
}

TEST_CASE("crossed effects separate what machines add from what programs add") {
  const Planted planted;
  const CrossedEffects fit(planted.groups, planted.members, planted.line.values());
  CHECK(sum(fit, {"all", "m1", "a"}, 0) == Approx(2.0).margin(0.02));
  CHECK(sum(fit, {"all", "m2", "b"}, 0) == Approx(2.4).margin(0.02));
  CHECK(sum(fit, {"all", "m1", "a"}, 1) == Approx(1.5).margin(0.02));
  CHECK(fit.effects().at("a")[1] - fit.effects().at("b")[1] == Approx(1.0).margin(0.02));
  CHECK(fit.effects().at("m2")[0] - fit.effects().at("m3")[0] == Approx(0.8).margin(0.02));
}

TEST_CASE("a figure that rows tell is narrower than its prior, one that none depends on is as wide") {
  Planted planted;
  planted.groups.push_back({"m9", {1, 1}});
  const CrossedEffects fit(planted.groups, planted.members, planted.line.values());
  for (const double deviation : fit.deviations(1)) {  // of m1
    CHECK(deviation > 0);
    CHECK(deviation < 1);
  }
  CHECK(fit.deviations(planted.groups.size() - 1) == std::vector<double>{1, 1});
}

TEST_CASE("leaving a group out to first order is what a fit without it says, where rows are linear") {
  const Planted planted;
  const CrossedEffects fit(planted.groups, planted.members, planted.line.values());
  const auto left = fit.leave_out({2, 3}, planted.line.values());  // m2, m3
  CHECK(left.size() == 16);
  const Planted without(2);
  const CrossedEffects refit(without.groups, without.members, without.line.values());
  for (const auto& [at, residual] : left) {
    if (planted.members[at][1] != 3) continue;
    const char* program = planted.members[at][2] == 4 ? "a" : "b";
    const double predicted = sum(refit, {"all", program}, 0) + sum(refit, {"all", program}, 1) * planted.line.z[at];
    CHECK(residual == Approx((predicted - planted.line.y[at]) / kSigma).margin(0.05));
  }
}

// A search ends where it gains little of all the loss, and the last two rows cannot both be right: the others' gradient
// is not 0 then.
TEST_CASE("without all of its rows a group is where its prior has it, however far the search came") {
  const std::vector<double> measured{2, 2, 2, 50, 1e6};
  const RowValues curved = [&](const std::vector<std::vector<double>>& thetas, double step) {
    std::vector<RowSlope> rows;
    for (std::size_t row = 0; row < thetas.size(); ++row) {
      const double predicted = std::exp(3 * thetas[row][0]);
      rows.push_back({(predicted - measured[row]) / 0.01, {}});
      if (step != 0) rows.back().slope = {3 * predicted / 0.01};
    }
    return rows;
  };
  const CrossedEffects fit({{"one", {0.3}}, {"other", {0.3}}}, {{0}, {0}, {0}, {1}, {1}}, curved);
  CHECK(std::abs(fit.rows()[0].residual) > 1);  // the search ended before it was done
  const auto left = fit.leave_out({0}, curved);
  REQUIRE(left.size() == 3);
  for (const auto& [row, residual] : left) CHECK(residual == Approx((1 - measured[row]) / 0.01).epsilon(1e-9));
}

// y = share + own z, the share 0 at most. Rows of z = 0 want it larger, which it cannot be.
TEST_CASE("a share at the end of its range stays there when rows are left out") {
  const std::vector<double> z{0, 0, 1, 1, 2}, y{1, 1, 0.4, 0.4, 0.8};
  const RowValues capped = [&](const std::vector<std::vector<double>>& thetas, double step) {
    std::vector<RowSlope> rows;
    for (std::size_t row = 0; row < thetas.size(); ++row) {
      const double share = thetas[row][0];
      rows.push_back({(std::min(share, 0.0) + thetas[row][1] * z[row] - y[row]) / kSigma, {}});
      const bool falls = step > 0 || share < 0;
      if (step != 0) rows.back().slope = {falls ? 1 / kSigma : 0, z[row] / kSigma};
    }
    return rows;
  };
  const CrossedEffects fit({{"share", {1, 0}}, {"own", {0, 1}}, {"last", {0, 0}}},
                           {{0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1, 2}}, capped);
  REQUIRE(fit.effects().at("share")[0] >= 0);
  CHECK(std::abs(fit.leave_out({2}, capped).at(4)) < 0.2);
}

TEST_CASE("what rows owe to how they were measured is no part of a prediction") {
  Planted planted;
  planted.groups.push_back({"clock of m3", {1, 0}, true});
  for (std::size_t row = 0; row < planted.members.size(); ++row)
    if (planted.members[row][1] == 3) planted.members[row].push_back(planted.groups.size() - 1);
  const CrossedEffects fit(planted.groups, planted.members, planted.line.values());
  const double clock = fit.effects().at("clock of m3")[0];
  CHECK(clock < -0.1);
  for (const auto& [row, residual] : fit.leave_out({1}, planted.line.values())) CHECK(planted.members[row][1] == 1);
  const auto own = fit.leave_out({planted.groups.size() - 1}, planted.line.values());
  REQUIRE(own.size() == 8);
  // Without its rows m3 is as the others are on average, whatever its clock had explained.
  for (const auto& [row, residual] : own) CHECK(residual * kSigma == Approx(0.6).margin(0.05));
}

TEST_CASE("a search that begins at another's effects ends where one from nothing does") {
  const Planted planted;
  const CrossedEffects cold(planted.groups, planted.members, planted.line.values());
  Effects off = cold.effects();
  for (auto& [name, added] : off) added[0] += 0.3;
  off["of no group here"] = {5, 5};
  const CrossedEffects warm(planted.groups, planted.members, planted.line.values(), off);
  for (const auto& [name, added] : cold.effects())
    for (std::size_t figure = 0; figure < added.size(); ++figure)
      CHECK(warm.effects().at(name)[figure] == Approx(added[figure]).margin(1e-3));
}

TEST_CASE("one row far off does not decide") {
  Planted planted;
  planted.line.y[5] += 50;
  const CrossedEffects fit(planted.groups, planted.members, planted.line.values());
  CHECK(sum(fit, {"all", "m2", "b"}, 0) == Approx(2.4).margin(0.1));
  CHECK(std::abs(fit.rows()[5].residual) > 100);
}

}  // namespace
}  // namespace dculab::sim
