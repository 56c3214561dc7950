// Choices over several draws, with figures made up for each.
#include "study/decide/drawn_requests.hpp"

#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

std::optional<DrawnVerdict> decided(const std::vector<std::vector<double>>& figures, int threads) {
  std::vector<std::string> names;
  for (std::size_t choice = 0; choice < figures.size(); ++choice) names.push_back(std::to_string(choice));
  const auto figure = [&](std::size_t choice, std::size_t draw) { return figures[choice][draw]; };
  return decide_over_draws(
      names, figures.front().size(), [&] { return figure; }, threads);
}

TEST_CASE("the preferred choice is taken unless another is clearly better in the draws") {
  // The second is 1 % better in the mean, by draws that disagree; the third is 10 % worse in each.
  const std::vector<std::vector<double>> figures{
      {100, 110, 90, 105}, {104, 108, 95, 102}, {90, 99, 81, 94.5}, {0, 120, 120, 120}};
  for (const int threads : {1, 3}) {
    const auto found = decided(figures, threads);
    REQUIRE(found);
    CHECK(found->verdict.best == 1);
    CHECK(found->verdict.chosen == 0);
    CHECK(found->verdict.is_tied(0));
    CHECK_FALSE(found->verdict.is_tied(2));
    CHECK(found->verdict.costs[2]->value == Approx(0.12).margin(0.01));
    CHECK_FALSE(found->verdict.costs[3]);  // one draw cannot be had
  }
  CHECK(decided({{100, 100}, {130, 130}}, 1)->verdict.chosen == 1);
  CHECK_FALSE(decided({{0, 1}, {1, 0}}, 1));
}

}  // namespace
}  // namespace dculab::study
