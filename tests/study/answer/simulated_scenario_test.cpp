// A scenario's simulations: which points there are, which of them its objective prefers, and what is told of them.
#include "study/answer/simulated_scenario.hpp"

#include <algorithm>
#include <string>

#include "config/scenario_document.hpp"
#include "core/error.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

const std::string kTwelveRequests = "workload: {requests: 12, prompt_tokens: 200, output_tokens: 16}\n";
const std::string kRate = "output_tokens_per_second";

SimulationQuestion simulated_question(const std::string& more) {
  return simulation_question(config::read_scenario(
      "s.yaml", config::parse_value("s.yaml", "schema: dculab/scenario/1\nquestion: q\nmodel: llama-3-8b\n" + more)));
}

SimulationAnswer answered(const SimulationQuestion& question, SimulatedIntervals intervals = SimulatedIntervals::none) {
  return answer_simulation(question, {.threads = 1}, intervals);
}

TEST_CASE("a machine has the points that its stack takes, and swept machines name their own") {
  const std::string sizes = "kv_cache.block_size: [16, 64, 128]";
  const SimulationQuestion vllm =
      simulated_question("machine: k100-ai\n" + kTwelveRequests + "sweep: {" + sizes + "}\nstack: vllm\n");
  REQUIRE(vllm.sweeps.size() == 1);
  CHECK(vllm.sweeps[0].machine == "k100-ai");
  CHECK(vllm.sweeps[0].left_out == std::vector<std::string>{"16"});
  CHECK(vllm.num_points() == 2);
  CHECK_FALSE(vllm.kernels.empty());
  const SimulationQuestion swept =
      simulated_question("machine: z100\n" + kTwelveRequests + "sweep: {machine: [z100, mi50-32gb], " + sizes + "}\n");
  CHECK(swept.num_points() == 6);
  CHECK(swept.sweeps[0].left_out.empty());
}

TEST_CASE("the objective's best is named, and block sizes are judged with the model's own KV heads") {
  const SimulationQuestion question =
      simulated_question("machine: z100\n" + kTwelveRequests +
                         "sweep: {model.num_key_value_heads: [8, 2], kv_cache.block_size: [1, 16]}\n"
                         "objective: {maximize: output_tokens_per_second}\n"
                         "pareto: {minimize: [tpot_p50], maximize: [output_tokens_per_second]}\n");
  const SimulationAnswer answer = answered(question);
  REQUIRE(answer.simulations.size() == 4);
  REQUIRE(answer.choice);
  REQUIRE(answer.choice->best);
  for (const Simulation& each : answer.simulations)
    CHECK(each.figures.at(kRate) <= answer.simulations[*answer.choice->best].figures.at(kRate));
  CHECK(answer.choice->sweeps_heads);
  REQUIRE(answer.choice->block_sizes.size() == 1);
  CHECK(answer.choice->block_sizes[0].machine == "z100");
  CHECK(answer.choice->block_sizes[0].kv_heads == 8);
  CHECK(answer.choice->block_sizes[0].blocks.evaluated.size() == 2);
  REQUIRE(answer.front);
  CHECK(std::ranges::find(*answer.front, *answer.choice->best) != answer.front->end());
  REQUIRE(answer.machines.size() == 1);
  CHECK(answer.machines[0].name == "z100");
  REQUIRE(answer.input_sensitivities.size() == 1);
  CHECK(answer.input_sensitivities[0].simulation == 0);
  CHECK_FALSE(answer.input_sensitivities[0].input_sensitivities.empty());
}

TEST_CASE("limits that no point meets leave no best and no block size") {
  const SimulationAnswer answer = answered(
      simulated_question("machine: z100\n" + kTwelveRequests +
                         "sweep: {kv_cache.block_size: [1, 16]}\n"
                         "objective: {maximize: output_tokens_per_second, subject_to: {tpot_p50: \"<= 1 ns\"}}\n"));
  REQUIRE(answer.choice);
  CHECK_FALSE(answer.choice->best.has_value());
  CHECK(answer.choice->block_sizes.empty());
  CHECK_FALSE(answer.front.has_value());
}

TEST_CASE("one point alone has intervals where they are asked for, and no choice without an objective") {
  const SimulationQuestion question = simulated_question("machine: z100\n" + kTwelveRequests);
  CHECK(question.num_points() == 1);
  const SimulationAnswer with = answered(question, SimulatedIntervals::of_single_point), without = answered(question);
  CHECK_FALSE(with.simulations[0].intervals.empty());
  CHECK(without.simulations[0].intervals.empty());
  CHECK(with.simulations[0].figures == without.simulations[0].figures);
  CHECK_FALSE(with.choice.has_value());
  const SimulationAnswer several =
      answered(simulated_question("machine: z100\n" + kTwelveRequests + "sweep: {kv_cache.block_size: [1, 16]}\n"),
               SimulatedIntervals::of_single_point);
  for (const Simulation& each : several.simulations) CHECK(each.intervals.empty());
}

TEST_CASE("measured steps say of which simulation they are") {
  Simulation first, second;
  first.machine = "a", second.machine = "b";
  first.choices = {{"kv_cache.block_size", "16"}};
  first.trace.header.timing = "once", second.trace.header.timing = "twice";
  first.trace.steps.resize(2), second.trace.steps.resize(1);
  first.trace.steps[1].id = "step 1", second.trace.steps[0].id = "step 0";
  Trace trace;
  add_measured_steps({first, second}, trace);
  REQUIRE(trace.steps.size() == 3);
  CHECK(trace.steps[1].id == label(first) + ", step 1");
  CHECK(trace.steps[2].id == "b, step 0");
  CHECK(trace.header.timing == "twice");
}

}  // namespace
}  // namespace dculab::study
