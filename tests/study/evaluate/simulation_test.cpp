// Simulated points of a scenario: the best, the front, and how far their figures reach.
#include "study/evaluate/simulation.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "config/yaml_text.hpp"
#include "study/evaluate/block_size_verdict.hpp"
#include "study/evaluate/serving_intervals.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study::test {
namespace {

const std::string kScenario = R"(schema: dculab/scenario/1
question: Which limit serves best?
model: llama-3-8b
machine: z100
workload: {requests: 16, prompt_tokens: 300, output_tokens: 24, seed: 3}
slo: {ttft: 2 s}
sweep:
  engine.max_num_seqs: [1, 4, 16]
  kv_cache.block_size: [1, 16]
objective: {maximize: output_tokens_per_second}
pareto: {minimize: [tpot_p50], maximize: [output_tokens_per_second]}
)";
const std::string kRate = "output_tokens_per_second", kPace = "tpot_p50";

struct Sweep {
  config::Scenario scenario = config::read_scenario("s.yaml", config::parse_yaml("s.yaml", kScenario));
  std::vector<config::SweepPoint> points = config::sweep_points(scenario);
  std::vector<SimulatedPoint> asked;

  Sweep() {
    for (const config::SweepPoint& point : points) asked.push_back({&point, "z100"});
  }
  [[nodiscard]] std::vector<Simulation> simulated(int threads = 1) const {
    SimulateOptions options;
    options.threads = threads;
    return simulate_points(asked, options);
  }
};

[[nodiscard]] double figure(const Simulation& simulation, const std::string& metric) {
  return simulation.figures.at(metric);
}

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
