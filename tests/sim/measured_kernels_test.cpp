// Calibration where the machine file knows the rates of matmul kernels: one format's steps speak for another's.
#include <algorithm>
#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include "model/plan_step.hpp"
#include "sim/calibration/fit.hpp"
#include "sim/calibration/floor_check.hpp"
#include "sim/compute/matmul_rate.hpp"
#include "tests/sim/lowered.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/sim/synthetic_traces.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

// A CPU whose kernels were measured, and what steps on it really cost: less of every rate, another memory.
Machine measured_cpu() {
  Machine machine = cpu_like();
  constexpr FlopsPerSecond kGflops{1e9};
  machine.peaks[Dtype::int8] = {1.2 * kTflops, {}};
  machine.matmul_rates[{Dtype::f16, ActivationMode::exact}] = {{1, 60 * kGflops}, {8, 110 * kGflops}};
  machine.matmul_rates[{Dtype::int4, ActivationMode::exact}] = {{1, 44 * kGflops}, {8, 140 * kGflops}};
  machine.matmul_rates[{Dtype::int4, ActivationMode::int8}] = {{1, 150 * kGflops}, {8, 480 * kGflops}};
  machine.stack.reached.matmul_compute = 0.95;
  return machine;
}

Machine cpu_truth() {
  Machine machine = measured_cpu();
  machine.stack.reached.matmul_compute = 0.7;
  machine.stack.reached.attention_compute = 0.3;
  machine.sustained.dram_bandwidth = 0.75;
  machine.overheads.kernel_launch = Seconds(6e-6);
  return machine;
}

std::vector<TraceStep> cpu_grid(WeightFormat weights, ActivationMode activations, std::array<int, 2> contexts) {
  std::vector<TraceStep> steps;
  for (const int batch : {1, 2, 8, 16})
    for (const int context : contexts) {
      TraceStep& step = steps.emplace_back(make_step(llama_2_7b(), Phase::decode, batch, context));
      step.options.weights = weights;
      step.options.activations = activations;
      step.options.activation_dtype = Dtype::f32;
    }
  return steps;
}

TEST_CASE("below the first measured row count a pass over the weights takes as long as there") {
  const RateByRows rates{{4, FlopsPerSecond(80e9)}, {8, FlopsPerSecond(100e9)}};
  CHECK(rate_at(rates, 1).value() == Approx(20e9));
  CHECK(rate_at(rates, 4).value() == Approx(80e9));
  CHECK(rate_at(rates, 1e6).value() == Approx(100e9));
}

TEST_CASE("a fit to F16 steps predicts steps of quantized weights by what their kernels were measured to do") {
  const std::vector<TraceStep> seen =
      time_steps(cpu_truth(), cpu_grid({Dtype::f16, 0}, ActivationMode::exact, {256, 2000}), 0.01, 1);
  Machine unmeasured = measured_cpu();
  unmeasured.matmul_rates.clear();
  const Machine informed = fit_machine(measured_cpu(), seen).machine, blind = fit_machine(unmeasured, seen).machine;
  CHECK(informed.stack.reached.matmul_compute == Approx(0.7).epsilon(0.05));
  for (const ActivationMode activations : {ActivationMode::exact, ActivationMode::int8}) {
    const std::vector<TraceStep> unseen =
        time_steps(cpu_truth(), cpu_grid({Dtype::int4, 128}, activations, {600, 1500}), 0, 2);
    const ErrorSummary known = summarize_errors(compare_steps(informed, unseen));
    const ErrorSummary guessed = summarize_errors(compare_steps(blind, unseen));
    INFO(known.median_abs_error << ", P90 " << known.p90_abs_error << "; blind " << guessed.median_abs_error);
    CHECK(known.p90_abs_error < 0.03);
    CHECK(guessed.median_abs_error > 3 * known.p90_abs_error);
  }
}

TEST_CASE("weights from memory are read as fast as the kernel was seen to, and arithmetic holds up a faster memory") {
  Machine machine = measured_cpu();
  machine.overheads.kernel_launch = Seconds{};
  machine.overheads.workgroup_start = Seconds{};
  machine.stack.reached.matmul_overlap = 1;
  machine.sustained.dram_bandwidth = 0.8;
  machine.matmul_dram_shares[{Dtype::int4, ActivationMode::int8}] = {{1, 0.5}, {8, 0.25}};
  const TraceStep step = cpu_grid({Dtype::int4, 128}, ActivationMode::int8, {256, 2000})[4];  // batch 8 is half way up
  const StepPlan plan = plan_step(step.model, step.options, uniform_batch(Phase::decode, 4, 256));
  const auto op = std::find_if(plan.ops.begin(), plan.ops.end(), [](const Op& each) {
    return each.kind == OpKind::matmul && each.weight_format.dtype == Dtype::int4;
  });
  REQUIRE(op != plan.ops.end());
  const OpPrice price = price_op(machine, *op, step_footprint(plan));
  const double multiplying = 3.0 / 7 * (4 - 2);  // 1 / share is linear in the rows: what those after the first add
  const double share = 1 / (2 / machine.sustained.dram_bandwidth + multiplying / machine.stack.reached.matmul_compute);
  const Seconds memory = price.bytes[machine.memory.size() - 1] / (share * machine.dram().bandwidth);
  CHECK(price.seconds / memory == Approx(1));
  machine.memory.back().bandwidth = 1.5 * machine.dram().bandwidth;
  CHECK(price_op(machine, *op, step_footprint(plan)).seconds / memory == Approx(1 / 1.5));
  machine.memory.back().bandwidth = 1000 * machine.dram().bandwidth;
  const OpPrice held_up = price_op(machine, *op, step_footprint(plan));
  CHECK(held_up.seconds == held_up.compute);
  CHECK(held_up.bound.kind == BoundKind::compute);
}

TEST_CASE("activations from DRAM take the time of its bandwidth, not that of weights that many rows multiply") {
  Machine machine = measured_cpu();
  machine.overheads.kernel_launch = machine.overheads.workgroup_start = Seconds{};
  machine.stack.reached.matmul_overlap = 1;
  machine.stack.reached.matmul_compute = machine.sustained.dram_bandwidth = 1;
  machine.matmul_dram_shares[{Dtype::f16, ActivationMode::exact}] = {{1, 0.9}, {256, 0.01}};
  const TraceStep step = cpu_grid({Dtype::f16, 0}, ActivationMode::exact, {256, 2000})[0];
  const StepPlan plan = plan_step(step.model, step.options, uniform_batch(Phase::prefill, 128, 512));
  const Op& op = *std::ranges::find(plan.ops, OpKind::matmul, &Op::kind);
  const OpPrice price = price_op(machine, op, step_footprint(plan));
  const Bytes weights(static_cast<double>(2 * op.n * op.k)), arriving = price.bytes[machine.memory.size() - 1];
  REQUIRE(arriving > 10 * weights);
  const double passes = 128 * 512 / 256.0 / 0.01;  // beyond 256 rows their rate holds
  const Seconds multiplying = passes * weights / machine.dram().bandwidth;
  const Seconds streaming = (arriving - weights) / machine.dram().bandwidth;
  CHECK(price.seconds / std::max({price.compute, multiplying, streaming}) == Approx(1));
}

TEST_CASE("a row of weights costs something on top of its in-features, where short ones were measured too") {
  Machine machine = measured_cpu();
  machine.peaks[Dtype::f32].vector = 10 * kTflops;
  machine.matmul_rates[{Dtype::f16, ActivationMode::exact}] = {{1, FlopsPerSecond(100e9)}};
  machine.matmul_dram_shares[{Dtype::f16, ActivationMode::exact}] = {{1, 0.8}};
  machine.sustained.dram_bandwidth = 1;
  Op op;
  op.m = 1;
  op.n = 1000;
  op.weight_format = {Dtype::f16, 0};
  const auto times = [&](std::int64_t in_features) {
    op.k = in_features;
    return std::pair{100e9 / matmul_rate(machine, op)->value(), 0.8 / *matmul_dram_share(machine, op)};
  };
  CHECK(times(100) == times(2048));
  // Half as fast with 512: a row costs what 2048 / 2 in-features cost.
  machine.short_matmul_rates[{Dtype::f16, ActivationMode::exact}] = {{1, FlopsPerSecond(50e9)}};
  machine.short_matmul_dram_shares[{Dtype::f16, ActivationMode::exact}] = {{1, 0.64}};
  for (const auto& [in_features, rate, share] : {std::tuple{512, 2.0, 1.25},
                                                 {2048, 1.0, 1.0},
                                                 {1024, 1 + 1.0 / 3, 1 + 0.25 / 3},
                                                 {256, 1 + 7.0 / 3, 1 + 0.25 * 7 / 3},
                                                 {4096, 1 - 0.5 / 3, 1 - 0.125 / 3}}) {
    CHECK(times(in_features).first == Approx(rate));
    CHECK(times(in_features).second == Approx(share));
  }
  machine.short_matmul_rates.begin()->second = {{1, FlopsPerSecond(101e9)}};  // a measurement's noise
  CHECK(times(512).first == Approx(1));
  machine.short_matmul_rates.begin()->second = {{1, FlopsPerSecond(10e9)}};
  CHECK(times(1 << 20).first > 0.3);
  machine.matmul_dram_shares.begin()->second = {{1, 1.0}};
  machine.short_matmul_dram_shares.begin()->second = {{1, 0.5}};
  op.k = 1 << 20;
  CHECK(*matmul_dram_share(machine, op) == 1);
}

TEST_CASE("steps with 8-bit activations are held against the rate of bytes") {
  const Machine machine = measured_cpu();
  std::vector<TraceStep> steps = cpu_grid({Dtype::int4, 128}, ActivationMode::int8, {64, 64});
  steps.back().batch = uniform_batch(Phase::decode, 64, 64);
  steps = time_steps(machine, {steps.back()}, 0, 1);
  const StepPlan plan = plan_step(steps[0].model, steps[0].options, steps[0].batch);
  CHECK(steps[0].duration < total_flops(plan) / machine.peaks.at(Dtype::f32).vector);
  CHECK(floor_violations(machine, steps).empty());
  steps[0].options.activations = ActivationMode::exact;
  CHECK_FALSE(floor_violations(machine, steps).empty());
}

}  // namespace
}  // namespace dculab::sim::test
