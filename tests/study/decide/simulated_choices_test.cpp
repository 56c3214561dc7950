// Which simulated points an objective prefers: the best, the front, the block size.
#include "study/decide/simulated_choices.hpp"

#include <algorithm>
#include <vector>

#include "tests/study/simulated_sweep.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study::test {
namespace {

TEST_CASE("the best of the simulations meets the objective's limits, and nothing beats the front") {
  const Sweep sweep;
  const std::vector<Simulation> all = sweep.simulated();
  const auto found = best(all, sweep.scenario.objective);
  REQUIRE(found);
  for (const Simulation& each : all) CHECK(figure(each, kRate) <= figure(all[*found], kRate));

  double least = figure(all.front(), kPace);
  for (const Simulation& each : all) least = std::min(least, figure(each, kPace));
  config::Objective limited = sweep.scenario.objective;
  limited.subject_to = {{kPace, config::Comparison::at_most, least}};
  const auto with_least = best(all, limited);
  REQUIRE(with_least);
  CHECK(figure(all[*with_least], kPace) == least);
  limited.subject_to.front().value = least / 2;
  CHECK_FALSE(best(all, limited));

  for (const std::size_t index : pareto_front(all, sweep.scenario.pareto, sweep.scenario.objective))
    for (const Simulation& other : all)
      CHECK_FALSE(
          (figure(other, kPace) < figure(all[index], kPace) && figure(other, kRate) > figure(all[index], kRate)));
}

TEST_CASE("the block size is decided among points that differ in nothing else") {
  const Sweep sweep;
  const std::vector<Simulation> all = sweep.simulated();
  const config::Objective& objective = sweep.scenario.objective;
  const auto verdict = block_size_verdict(sweep.asked, all, *best(all, objective), objective, 1);
  REQUIRE(verdict);
  CHECK(verdict->evaluated.size() == 2);
}

}  // namespace
}  // namespace dculab::study::test
