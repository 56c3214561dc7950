// Fits to rows that jump, and what they say of each figure.
#include "sim/calibration/jumping_fit.hpp"

#include <cmath>
#include <vector>

#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

// A step that computes, exchanges and waits for the host, in ms at theta = 0.
struct Step {
  double compute = 0, exchange = 0, host = 0;
};

constexpr double kSigma = 0.01;
const std::vector<JumpingFigure> kFigures{{0.3, TimeLaw::inverse}, {0.3, TimeLaw::inverse}, {1, TimeLaw::proportional}};

double time_of(const Step& step, const std::vector<double>& theta) {
  return step.compute * std::exp(-theta[0]) + step.exchange * std::exp(-theta[1]) + step.host * std::exp(theta[2]);
}

// `leap`: times change by steps of this share.
std::vector<KnownFigure> fitted(const std::vector<Step>& steps, const std::vector<double>& truth, double leap = 0) {
  const auto log_time = [leap](double time) {
    return leap > 0 ? leap * std::round(std::log(time) / leap) : std::log(time);
  };
  const auto residuals_at = [&](const std::vector<std::vector<double>>& thetas) {
    std::vector<std::vector<double>> rows;
    for (const std::vector<double>& theta : thetas) {
      std::vector<double>& row = rows.emplace_back();
      for (const Step& step : steps)
        row.push_back((log_time(time_of(step, theta)) - log_time(time_of(step, truth))) / kSigma);
    }
    return rows;
  };
  return fit_jumping_rows(residuals_at, kFigures, std::vector<double>(steps.size(), 1.0));
}

const std::vector<Step> kApart{{10, 0, 0}, {10, 10, 0}, {1, 0, 3}, {5, 5, 1}};
const std::vector<Step> kTogether{{10, 8, 0}, {20, 16, 0}, {30, 24, 0}};

TEST_CASE("steps of which each has another part tell figures apart") {
  for (const double leap : {0.0, 0.01}) {
    const std::vector<double> truth{-0.3, 0.2, 1.5};
    const std::vector<KnownFigure> known = fitted(kApart, truth, leap);
    for (std::size_t figure = 0; figure < truth.size(); ++figure) {
      INFO("leap " << leap << ", figure " << figure);
      CHECK(std::abs(known[figure].theta - truth[figure]) < 0.05);
      CHECK(known[figure].deviation < 0.2 * kFigures[figure].sigma);
      CHECK_FALSE(known[figure].confounded_with);
    }
  }
}

TEST_CASE("figures that make up for one another are said to, and each is known no better than that") {
  const std::vector<double> truth{0.5, -0.7, 0};
  const std::vector<KnownFigure> known = fitted(kTogether, truth);
  CHECK(known[0].confounded_with == 1U);
  CHECK(known[1].confounded_with == 0U);
  for (std::size_t figure = 0; figure < 2; ++figure) {
    INFO("figure " << figure);
    CHECK(std::abs(known[figure].theta - truth[figure]) > 0.1);  // the priors decide
    CHECK(std::abs(known[figure].theta - truth[figure]) < 3 * known[figure].deviation);
  }
  // No row depends on it.
  CHECK(known[2].theta == 0);
  CHECK(known[2].deviation == kFigures[2].sigma);
}

TEST_CASE("a figure whose prior has no width stays") {
  std::vector<JumpingFigure> figures = kFigures;
  figures[1].sigma = 0;
  const auto residuals_at = [](const std::vector<std::vector<double>>& thetas) {
    std::vector<std::vector<double>> rows;
    for (const std::vector<double>& theta : thetas) rows.push_back({(theta[0] + theta[1] - 0.2) / kSigma});
    return rows;
  };
  const std::vector<double> counts{1};
  const std::vector<KnownFigure> known = fit_jumping_rows(residuals_at, figures, counts);
  CHECK(known[0].theta == Approx(0.2).margin(0.01));
  CHECK(known[1].theta == 0);
}

}  // namespace
}  // namespace dculab::sim::test
