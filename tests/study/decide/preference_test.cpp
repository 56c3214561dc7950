// The rule by which choices are taken, on figures made up by hand.
#include "study/decide/preference.hpp"

#include <array>
#include <vector>

#include "study/decide/drawn_requests.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

Evaluated sure(const char* value, double figure) { return {.value = value, .figure = figure}; }
Evaluated shifted(const char* value, double figure, std::vector<double> shifts) {
  return {.value = value, .figure = figure, .shifts = std::move(shifts)};
}

TEST_CASE("within the resolution choices are tied and the first is taken, beyond it the best") {
  const std::array choices{sure("16", 100), sure("8", 90), sure("32", 100.5), sure("64", 100.9)};
  const auto verdict = decide(choices, {});
  REQUIRE(verdict);
  CHECK(choices[verdict->best].value == "64");
  CHECK(choices[verdict->chosen].value == "16");
  CHECK(choices[*verdict->runner_up].value == "64");
  CHECK(verdict->is_tied(0));
  CHECK_FALSE(verdict->is_tied(1));
  CHECK(verdict->costs[1]->value == Approx(100.9 / 90 - 1));
  CHECK(decide(choices, {.resolution = 0.001, .given_up = 0})->chosen == 3);
}

TEST_CASE("what is given up is given up for what stands first, without calling it tied") {
  const std::array choices{sure("8", 100), sure("4", 104), sure("1", 200)};
  const auto strict = decide(choices, {.given_up = 0.05});
  CHECK(strict->chosen == 2);
  const auto generous = decide(std::span(choices).first(2), {.given_up = 0.05});
  CHECK(generous->chosen == 0);
  CHECK_FALSE(generous->is_tied(0));
}

TEST_CASE("choices are tied where what they are uncertain by ranks them the other way, not where both move alike") {
  const std::array alike{shifted("16", 100, {0.3, 0.1}), shifted("32", 110, {0.3, 0.1})};
  CHECK(decide(alike, {})->chosen == 1);
  const Cost cost = *decide(alike, {})->costs[0];
  CHECK(cost.low == Approx(0.1));
  CHECK(cost.high == Approx(0.1));
  const std::array apart{shifted("16", 100, {0.3, 0.1}), shifted("32", 110, {0.2, 0.1})};
  CHECK(decide(apart, {})->is_tied(0));
  CHECK(decide(apart, {})->chosen == 1);  // 10 % slower is no answer, however vague
  CHECK(decide(apart, {})->costs[0]->high == Approx(1.1 * std::exp(1.645 * 0.1) - 1));
  CHECK(difference(apart[0], apart[1]).value == Approx(0.1));
  CHECK(difference(apart[1], apart[0]).value == Approx(1 / 1.1 - 1));
}

TEST_CASE("what cannot be had is neither chosen nor a runner-up, and costs nothing that could be told") {
  CHECK_FALSE(decide({}, {}));
  const std::array none{sure("8", 0), sure("4", 0)};
  CHECK_FALSE(decide(none, {}));
  const std::array one{sure("8", 0), sure("4", 7)};
  CHECK(decide(one, {})->chosen == 1);
  CHECK_FALSE(decide(one, {})->runner_up);
  CHECK_FALSE(decide(one, {})->costs[0]);
}

TEST_CASE("over several draws the difference is that of the pairs, however far the draws are apart") {
  const std::array<double, 4> slow{100, 200, 50, 400}, fast{110, 220, 55, 440}, mixed{140, 160, 70, 320};
  const Evaluated a = over_draws("a", slow), b = over_draws("b", fast), c = over_draws("c", mixed);
  CHECK(difference(a, b).value == Approx(0.1));
  CHECK(difference(a, b).low == Approx(0.1));
  CHECK(difference(a, c).low < -0.1);
  CHECK(difference(a, c).high > 0.1);
  CHECK(over_draws("none", std::array{1.0, 0.0}).figure == 0);
  CHECK(over_draws("one", std::array{3.0}).shifts.empty());
}

TEST_CASE("a workload in which nothing is drawn has one draw, others have four of their own") {
  RequestWorkload workload;
  CHECK(draws_of(workload).size() == 1);
  workload.output.kind = LengthKind::lognormal;
  const std::vector<RequestWorkload> draws = draws_of(workload);
  REQUIRE(draws.size() == 4);
  CHECK(draws[0].seed == workload.seed);
  CHECK(draws[3].seed != draws[2].seed);
  workload.recorded.push_back({});
  CHECK(draws_of(workload).size() == 1);
}

}  // namespace
}  // namespace dculab::study
