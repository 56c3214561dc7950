#include "core/expert_histogram.hpp"

#include "tests/support/catch.hpp"

using namespace dculab;

namespace {

using Counts = std::vector<std::int64_t>;

// The first layer is dense.
[[nodiscard]] ExpertHistogram two_steps() {
  ExpertHistogram histogram;
  histogram.choices.resize(3);
  histogram.add(1, Counts{3, 0, 1});
  histogram.add(2, Counts{0, 0, 4});
  histogram.add(1, Counts{0, 2, 2});
  histogram.add(2, Counts{1, 1, 2});
  return histogram;
}

}  // namespace

TEST_CASE("an expert histogram adds up steps, layer by layer") {
  const ExpertHistogram histogram = two_steps();
  CHECK(histogram.choices == std::vector<Counts>{{}, {3, 2, 3}, {1, 1, 6}});
  CHECK(histogram.layer_steps == 4);
  CHECK_THAT(histogram.distinct_experts(), WithinRel((2 + 1 + 2 + 3) / 4.0));
  CHECK_THAT(histogram.hottest_share(), WithinRel((3 / 8.0 + 6 / 8.0) / 2));
  CHECK_FALSE(histogram.is_empty());
  CHECK(ExpertHistogram().is_empty());
}

TEST_CASE("an expert histogram becomes a load by rank, since layers have other favourites") {
  CHECK(two_steps().load().histogram == std::vector<double>{3 + 6, 3 + 1, 2 + 1});
}

TEST_CASE("expert histograms of one model add up") {
  ExpertHistogram sum;
  sum.add(two_steps());
  sum.add(two_steps());
  CHECK(sum.choices == std::vector<Counts>{{}, {6, 4, 6}, {2, 2, 12}});
  CHECK(sum.layer_steps == 8);
  CHECK_THAT(sum.distinct_experts(), WithinRel(two_steps().distinct_experts()));
}

TEST_CASE("a load is found that touches as many experts as were seen") {
  for (const double distinct : {12.0, 20.0, 35.0}) {
    const ExpertLoad load = load_touching(distinct, 64, 8, 16);
    CHECK(load.zipf_exponent > 0);
    CHECK_THAT(touched_experts(load, 64, 8, 16), WithinRel(distinct, 1e-6));
  }
  // More than chance gives, and a single token, which touches its experts under any load.
  CHECK(load_touching(64, 64, 8, 16) == ExpertLoad());
  CHECK(load_touching(8, 64, 8, 1) == ExpertLoad());
}
