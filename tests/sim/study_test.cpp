// Recommendations and their regret, worked out by hand.
#include "sim/study/recommend.hpp"

#include <cmath>

#include "tests/support/catch.hpp"

namespace dculab::sim {
namespace {

ChoiceTime choice_taking(int kv_heads, int block_size, std::size_t workload, double seconds) {
  return {{kv_heads, block_size}, workload, Seconds(seconds)};
}

TEST_CASE("following a prediction costs nothing where measurements tie") {
  const std::vector<ChoiceTime> predicted{choice_taking(8, 16, 0, 2), choice_taking(8, 32, 0, 1)};
  const std::vector<ChoiceTime> measured{choice_taking(8, 16, 0, 1.0001),
                                         choice_taking(8, 32, 0, 1)};  // 16 stands first
  const std::optional<Regret> regret = decision_regret(predicted, measured);
  REQUIRE(regret);
  CHECK(regret->predicted_best == Choice{8, 32});
  CHECK(regret->measured_best == Choice{8, 16});
  CHECK(regret->regret == 0);
}

TEST_CASE("choices are ranked by the geometric mean over the workloads") {
  const std::vector<ChoiceTime> times{choice_taking(1, 16, 0, 2),  choice_taking(1, 16, 1, 4.5),  // 3
                                      choice_taking(8, 16, 0, 1),  choice_taking(8, 16, 1, 4),    // 2
                                      choice_taking(8, 64, 0, 1),  choice_taking(8, 64, 1, 25),   // 5
                                      choice_taking(4, 16, 0, 0.1)};  // not run on workload 1
  const std::vector<ScoredChoice> ranked = rank_choices(times);
  REQUIRE(ranked.size() == 3);
  CHECK(ranked[0].choice == Choice{8, 16});
  CHECK(ranked[0].seconds.value() == Approx(2));
  CHECK(ranked[1].choice == Choice{1, 16});
  CHECK(ranked[1].seconds.value() == Approx(3));
  CHECK(ranked[2].choice == Choice{8, 64});
  CHECK(ranked[2].seconds.value() == Approx(5));
  CHECK(rank_choices({}).empty());
}

TEST_CASE("the smaller block wins a tie, a difference of more than a tenth of a percent does not count as one") {
  const std::vector<ChoiceTime> tied{choice_taking(8, 128, 0, 1), choice_taking(8, 16, 0, 1.0009),
                                     choice_taking(8, 64, 0, 1.0005)};
  CHECK(rank_choices(tied).front().choice == Choice{8, 16});
  const std::vector<ChoiceTime> apart{choice_taking(8, 128, 0, 1), choice_taking(8, 16, 0, 1.002)};
  CHECK(rank_choices(apart).front().choice == Choice{8, 128});
}

TEST_CASE("regret is what following the prediction costs in measured time") {
  // Means over the two workloads: predicted {2, 3}, measured {sqrt(2 * 1.1 * 3), sqrt(2 * 2)}.
  const std::vector<ChoiceTime> predicted{choice_taking(8, 16, 0, 1), choice_taking(8, 16, 1, 4),
                                          choice_taking(8, 64, 0, 3), choice_taking(8, 64, 1, 3)};
  const std::vector<ChoiceTime> measured{choice_taking(8, 16, 0, 2.2), choice_taking(8, 16, 1, 3),
                                         choice_taking(8, 64, 0, 2), choice_taking(8, 64, 1, 2)};
  const std::optional<Regret> regret = decision_regret(predicted, measured);
  REQUIRE(regret);
  CHECK(regret->predicted_best == Choice{8, 16});
  CHECK(regret->measured_best == Choice{8, 64});
  CHECK(regret->regret == Approx(std::sqrt(6.6) / 2 - 1));
  // Alone, workload 0 is predicted best with block 16: 2.2 instead of 2; workload 1 with 64: right.
  CHECK(regret->worst_single == Approx(0.1));
}

TEST_CASE("the right choice has no regret, and without a choice on all workloads there is none to speak of") {
  const std::vector<ChoiceTime> predicted{choice_taking(8, 16, 0, 1), choice_taking(8, 64, 0, 2)};
  const std::vector<ChoiceTime> measured{choice_taking(8, 16, 0, 10), choice_taking(8, 64, 0, 11)};
  const std::optional<Regret> regret = decision_regret(predicted, measured);
  REQUIRE(regret);
  CHECK(regret->regret == 0);
  CHECK(regret->worst_single == 0);
  const std::vector<ChoiceTime> scattered{choice_taking(8, 16, 0, 1), choice_taking(8, 64, 1, 1)};
  CHECK_FALSE(decision_regret(scattered, scattered));
}

}  // namespace
}  // namespace dculab::sim
