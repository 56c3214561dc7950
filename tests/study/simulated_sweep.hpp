// A scenario whose sweep has a best point, a front and several block sizes, and its simulations.
#pragma once

#include <string>
#include <vector>

#include "config/yaml_text.hpp"
#include "study/evaluate/simulation.hpp"

namespace dculab::study::test {

inline const std::string kScenario = R"(schema: dculab/scenario/1
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
inline const std::string kRate = "output_tokens_per_second", kPace = "tpot_p50";

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

[[nodiscard]] inline double figure(const Simulation& simulation, const std::string& metric) {
  return simulation.figures.at(metric);
}

}  // namespace dculab::study::test
