// Simulated points of a scenario, and how far their figures reach.
#include "study/evaluate/simulation.hpp"

#include <vector>

#include "study/evaluate/serving_intervals.hpp"
#include "tests/study/simulated_sweep.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study::test {
namespace {

TEST_CASE("points come to the same on any number of threads, in their order") {
  const Sweep sweep;
  const std::vector<Simulation> one = sweep.simulated(1), several = sweep.simulated(3);
  REQUIRE(one.size() == sweep.points.size());
  for (std::size_t index = 0; index < one.size(); ++index) {
    CHECK(one[index].choices == sweep.points[index].choices);
    CHECK(one[index].figures == several[index].figures);
    CHECK(label(one[index]) == label(several[index]));
  }
}

TEST_CASE("intervals hold the figures, and are those of faster and slower steps") {
  const Sweep sweep;
  Simulation last = sweep.simulated().back();
  add_intervals(sweep.points.back(), 1, last);
  for (const auto& [metric, value] : last.figures) {
    const sim::Range& interval = last.intervals.at(metric);
    CHECK(interval.low <= value);
    CHECK(interval.high >= value);
  }
  // All arrive at once and fit, so that slower steps change nothing but the time.
  CHECK(last.intervals.at(kPace).high / figure(last, kPace) == Approx(last.trust.high).epsilon(0.05));
}

}  // namespace
}  // namespace dculab::study::test
