// Ridge regression against answers by hand.
#include "sim/calibration/ridge.hpp"

#include "tests/support/catch.hpp"

namespace dculab::sim {
namespace {

TEST_CASE("ridge finds what rows say, less where their prior is narrow") {
  const std::vector<double> wide{1e6, 1e6};
  // x + y = 3, x - y = 1
  const std::vector<LinearRow> exact{{-3, {1, 1}, 0.1}, {-1, {1, -1}, 0.1}};
  const std::vector<double> solved = ridge(exact, wide);
  REQUIRE(solved.size() == 2);
  CHECK(solved[0] == Approx(2));
  CHECK(solved[1] == Approx(1));
  // x = 4 with sigma 1 against 0 with sigma 1: half of it; with sigma 2: a fifth.
  CHECK(ridge(std::vector<LinearRow>{{-4, {1}, 1}}, std::vector<double>{1})[0] == Approx(2));
  CHECK(ridge(std::vector<LinearRow>{{-4, {1}, 2}}, std::vector<double>{1})[0] == Approx(0.8));
  // Held where it is, the other does what it can.
  const std::vector<double> held = ridge(exact, std::vector<double>{1e-9, 1e6});
  CHECK(held[0] == Approx(0).margin(1e-9));
  CHECK(held[1] == Approx(1));
  CHECK(ridge({}, wide) == std::vector<double>{0, 0});
}

}  // namespace
}  // namespace dculab::sim
