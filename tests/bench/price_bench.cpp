// How fast the simulator is: a step of Llama-3-8B and one of DeepSeek-V3 priced on every shipped machine, by our own
// kernels and by vLLM's; one step planned and priced; and a sweep of 1,000 group x block points.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <set>

#include "model/folder/model_config.hpp"
#include "model/plan_step.hpp"
#include "sim/cost/step_price.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/stacks.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"

namespace {

using namespace dculab;
using namespace dculab::sim;

void price_decode(benchmark::State& state, const Machine& machine, const ModelShape& model) {
  const StepPlan plan = plan_step(model, {}, uniform_batch(Phase::decode, 16, 2048));
  StepPrice price;
  for (auto _ : state) {
    price_step(machine, plan, price);
    benchmark::DoNotOptimize(price.seconds);
  }
}

void plan_and_price_llama_3_8b_decode(benchmark::State& state, const Machine& machine) {
  const ModelShape model = test::llama_3_8b();
  const EngineOptions options;
  StepPlan plan;
  plan.batch = uniform_batch(Phase::decode, static_cast<int>(state.range(0)), 2048);
  StepPrice price;
  for (auto _ : state) {
    plan_step_into(plan, model, options);
    price_step(machine, plan, price);
    benchmark::DoNotOptimize(price.seconds);
  }
}

void sweep_1000_points(benchmark::State& state, const Machine& machine) {
  StepPlan plan;
  plan.batch = uniform_batch(Phase::decode, 16, 2048);
  StepPrice price;
  for (auto _ : state) {
    for (int point = 0; point < 1000; ++point) {
      EngineOptions options;
      options.block_size = 1 << (point % 9);
      plan_step_into(plan, with_kv_heads(test::llama_3_8b(), 1 << (point % 6)), options);
      price_step(machine, plan, price);
      benchmark::DoNotOptimize(price.seconds);
    }
  }
}

BENCHMARK_CAPTURE(price_decode, llama_3_8b / mi50, test::mi50_like(), test::llama_3_8b());
BENCHMARK_CAPTURE(price_decode, llama_3_8b / cpu, test::cpu_like(), test::llama_3_8b());
BENCHMARK_CAPTURE(plan_and_price_llama_3_8b_decode, mi50, test::mi50_like())->Arg(1)->Arg(16)->Arg(256);
BENCHMARK_CAPTURE(sweep_1000_points, mi50, test::mi50_like())->Unit(benchmark::kMillisecond);

void register_machine(const Machine& machine) {
  static const ModelShape deepseek = read_model_shape(study::find_model("deepseek-v3"));
  for (const auto& [label, model] : {std::pair{"llama_3_8b", test::llama_3_8b()}, {"deepseek_v3", deepseek}}) {
    const std::string name = std::string("price_decode/") + label + "/" + machine.name + "/" + machine.stack.name;
    benchmark::RegisterBenchmark(name.c_str(),
                                 [machine, model](benchmark::State& state) { price_decode(state, machine, model); });
  }
}

void register_shipped_machines() {
  std::set<std::filesystem::path> files;  // in order of their names
  for (const auto& entry : std::filesystem::directory_iterator(study::find_machine("z100").parent_path()))
    if (entry.path().extension() == ".yaml") files.insert(entry.path());
  for (const std::filesystem::path& file : files) {
    Machine machine = study::resolve_machine(file.string());
    register_machine(machine);
    for (const Stack& stack : study::shipped_stacks()) {
      if (!is_for(stack, machine) || stack.program != "vLLM" || stack.age > 0) continue;
      machine.stack = stack_on(machine, stack);
      register_machine(machine);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  register_shipped_machines();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
