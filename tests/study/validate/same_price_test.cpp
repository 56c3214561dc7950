// A published point and a step that a user asks for are priced by one path: the same machine, stack, plan and law.
#include "config/scenario_file.hpp"
#include "config/yaml_text.hpp"
#include "model/plan_step.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/study/measured_run.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/stacks.hpp"
#include "study/validate/published_points.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

struct Asked {
  std::string machine, software, stack, weights;
  int batch = 8, devices = 1;
};

// What `dculab predict` prices.
sim::StepPrice predicted_price(const Asked& asked) {
  const std::string text =
      "schema: dculab/scenario/1\nquestion: how long\nmodel: llama-3-8b\nmachine: " + asked.machine +
      "\nstack: " + asked.stack + "\nweights: " + asked.weights +
      "\nkv_cache: {dtype: f16, block_size: 16}\ndeployment: {tensor_parallel_size: " + std::to_string(asked.devices) +
      "}\nworkload: {phase: decode, context_tokens: 2000, batch: " + std::to_string(asked.batch) + "}\n";
  const config::Scenario scenario = config::read_scenario("test", config::parse_yaml("test", text));
  const sim::Machine machine = resolve_machine(scenario, asked.machine);
  ModelShape model = resolve_model(scenario);
  model.dtype = Dtype::f16;  // of embedding and head, as a point has it whose weights are f16
  model = resolve_part(scenario, model, machine);
  const EngineOptions options = resolve_options(scenario, model, machine);
  return sim::price_step(machine, plan_step(model, options, resolve_batch(scenario.workload, model, options)));
}

// What `dculab validate --points` prices for the same step.
Seconds validated(const Asked& asked) {
  config::PublishedPoint point;
  point.kind = config::PointKind::decode_rate;
  point.machine = asked.machine;
  point.software = asked.software;
  point.model = "llama-3-8b";
  point.weights = asked.weights;
  point.kv_block_size = 16;
  point.batch = asked.batch;
  point.devices = asked.devices;
  point.context_tokens = 2000;
  const std::vector<sim::Stack> stacks = shipped_stacks();
  const PublishedSoftware& software = find_software(point.software, resolve_machine(asked.machine), stacks);
  const sim::Machine machine = as_run_by(software, resolve_machine(asked.machine), stacks);
  CHECK(machine.stack.name == asked.stack);
  const PricedAs priced = price_as(point, machine, &software);
  REQUIRE(priced.measured_run.steps.size() == 1);
  return sim::price_run(machine, priced.measured_run);
}

TEST_CASE("predict and validate price the same step of a stack alike") {
  for (const Asked& asked : {Asked{"h100-sxm", "vLLM 0.14.0", "vllm-cuda", "f16"},
                             Asked{"mi300x", "vLLM (ROCm dev docker)", "vllm-rocm", "f16"},
                             Asked{"mi50", "llama.cpp HIP", "llama.cpp-hip", "f16"},
                             Asked{"a100-80gb-sxm", "gpt-fast", "gpt-fast", "f16", 1, 8},
                             Asked{"h100-sxm", "vLLM 0.14.0", "vllm-cuda", "f16", 8, 4},
                             Asked{"h100-sxm", "TensorRT-LLM v1.0", "tensorrt-llm", "f16"}}) {
    CAPTURE(asked.machine, asked.software);
    CHECK(validated(asked).value() == Approx(predicted_price(asked).seconds.value()).epsilon(1e-12));
  }
}

}  // namespace
}  // namespace dculab::study
