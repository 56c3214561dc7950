// How fast the simulator is: one step priced, one step planned and priced, and a sweep of 1,000 group x block points.
#include <benchmark/benchmark.h>

#include "core/step_plan.hpp"
#include "sim/cost/step_price.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"

namespace {

using namespace dculab;
using namespace dculab::sim;

void price_llama_3_8b_decode(benchmark::State& state, const Machine& machine) {
  const StepPlan plan = plan_step(test::llama_3_8b(), {}, uniform_batch(Phase::decode, 16, 2048));
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

BENCHMARK_CAPTURE(price_llama_3_8b_decode, mi50, test::mi50_like());
BENCHMARK_CAPTURE(price_llama_3_8b_decode, cpu, test::cpu_like());
BENCHMARK_CAPTURE(plan_and_price_llama_3_8b_decode, mi50, test::mi50_like())->Arg(1)->Arg(16)->Arg(256);
BENCHMARK_CAPTURE(sweep_1000_points, mi50, test::mi50_like())->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
