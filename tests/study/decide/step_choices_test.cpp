// KV heads and block sizes of a sweep of steps, on times made up by hand.
#include "study/decide/step_choices.hpp"

#include <vector>

#include "study/decide/measured_accuracy.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

PricedChoice took(int heads, int block, double seconds, bool fits = true) {
  return {.choice = {heads, block}, .workload = 0, .seconds = Seconds(seconds), .shifts = {}, .fits = fits};
}

TEST_CASE("without accuracy the model's own KV heads stay, and the others are a front") {
  const EvaluatedChoices choices = over_workloads(
      std::vector{took(8, 16, 1), took(4, 16, 0.8), took(2, 16, 0.9), took(1, 16, 0.5), took(8, 32, 0.995)});
  const auto decision = decide_steps(choices, 8, 16, {});
  REQUIRE(decision);
  CHECK(decision->choice == sim::Choice{8, 16});  // 0.5 % is no reason to leave the usual block size
  CHECK(decision->fastest == sim::Choice{1, 16});
  CHECK(decision->front == std::vector<bool>{true, true, false, true});  // 4 heads are faster than 2
  CHECK(decide_steps(choices, 32, 16, {})->choice.kv_heads == 8);        // the most that are swept
}

TEST_CASE("KV heads that are allowed are weighed by speed: the most that cost no more than is given up") {
  const EvaluatedChoices choices = over_workloads(
      std::vector{took(1, 16, 1), took(2, 32, 1.03), took(2, 16, 1.045), took(4, 32, 1.06), took(8, 32, 1.5)});
  const auto chosen = [&](std::vector<int> heads, double given_up) {
    return decide_steps(choices, 8, 16, AllowedHeads{std::move(heads), given_up})->choice;
  };
  CHECK(chosen({1, 2, 4, 8}, 0) == sim::Choice{1, 16});
  CHECK(chosen({1, 2, 4, 8}, 0.05) == sim::Choice{2, 32});
  CHECK(chosen({1, 2, 4, 8}, 0.061) == sim::Choice{4, 32});
  CHECK(chosen({8, 2}, 0.05) == sim::Choice{2, 32});
  CHECK_FALSE(decide_steps(choices, 8, 16, AllowedHeads{{64}, 0.05}));
}

TEST_CASE("the usual block size stands first among ties, then the smaller; 16 and 32 tie for study as for recommend") {
  CHECK(by_preference({32, 1, 16, 64}, 16) == std::vector<int>{16, 1, 32, 64});
  CHECK(by_preference({32, 1}, 16) == std::vector<int>{1, 32});
  const EvaluatedChoices choices =
      over_workloads(std::vector{took(8, 8, 1.2), took(8, 16, 1.004), took(8, 32, 1.001), took(8, 64, 1)});
  CHECK(decide_steps(choices, 8, 16, {})->choice.block_size == 16);
  CHECK(decide_steps(choices, 8, 128, {})->choice.block_size == 16);
  CHECK(decide_steps(choices, 8, 64, {})->choice.block_size == 64);
}

TEST_CASE("what has no room is not chosen, unless nothing has") {
  const auto decide_both = [](bool small_fits, bool large_fits) {
    return decide_steps(over_workloads(std::vector{took(8, 16, 1.2, small_fits), took(8, 128, 1, large_fits)}), 8, 16,
                        {})
        ->choice.block_size;
  };
  CHECK(decide_both(true, true) == 128);
  CHECK(decide_both(true, false) == 16);
  CHECK(decide_both(false, false) == 128);
}

TEST_CASE("workloads count by the geometric mean, with choices that have a time for each") {
  std::vector<PricedChoice> prices{took(8, 16, 1), took(8, 16, 4), took(8, 32, 9)};
  prices[1].workload = 1;
  prices[0].shifts = {0.2};
  prices[1].shifts = {0.4};
  const EvaluatedChoices choices = over_workloads(prices);
  REQUIRE(choices.size() == 1);
  CHECK(choices.at({8, 16}).figure == Approx(0.5));
  CHECK(choices.at({8, 16}).shifts.at(0) == Approx(-0.3));
}

TEST_CASE("the published curves say what they lose against the model without merged heads") {
  const std::vector<PublishedLosses> published = published_losses();
  REQUIRE(published.size() == 5);
  CHECK(published[0].model == "t5-xxl");
  CHECK(published[0].by_kv_heads.at(8) == Approx(0.1 / 47.2));
  CHECK(published[0].by_kv_heads.at(1) == Approx(0.6 / 47.2));
  CHECK(published[1].model == "deepseek-7b");
  CHECK(published[1].by_kv_heads.at(8) == Approx(4.0 / 45.2));
  for (const PublishedLosses& each : published) CHECK_FALSE(each.by_kv_heads.empty());
}

}  // namespace
}  // namespace dculab::study
