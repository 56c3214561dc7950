// Traces of machines that do not exist: steps priced by the simulator, with the noise of a measurement.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "model/plan_step.hpp"
#include "model/trace.hpp"
#include "sim/cost/step_price.hpp"
#include "tests/sim/models.hpp"

namespace dculab::sim::test {

// One step of `model`, not yet timed.
inline TraceStep make_step(const ModelShape& model, Phase phase, int batch, int context, int block_size = 16) {
  TraceStep step;
  step.model = model;
  step.options.block_size = block_size;
  step.batch = uniform_batch(phase, batch, context);
  step.id = std::to_string(model.kinds[0].gqa().heads.num_key_value_heads) + "/" + std::to_string(block_size) + "/" +
            std::to_string(batch) + "/" + std::to_string(context);
  return step;
}

// Times `steps` on `machine`; each time is off by a factor exp(normal(0, noise)).
inline std::vector<TraceStep> time_steps(const Machine& machine, std::vector<TraceStep> steps, double noise,
                                         unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> log_error;
  const auto disturbed = [&](Seconds time) { return noise > 0 ? time * std::exp(noise * log_error(random)) : time; };
  for (TraceStep& step : steps) {
    const StepPlan plan = plan_step(step.model, step.options, step.batch);
    const StepPrice price = price_step(machine, plan);
    step.duration = disturbed(price.seconds);
    step.spread = noise * step.duration;
    step.repeats = 7;
    for (std::size_t op = 0; op < plan.ops.size(); ++op) {
      step.op_names.emplace_back(plan.ops[op].name);
      step.op_durations.push_back(disturbed(price.ops[op].all_executions()));
    }
  }
  return steps;
}

// Prefill and decode of both a small and a large model over batches, contexts, KV heads and block sizes.
// `stretch` moves every batch and context, so that two grids share no point.
inline std::vector<TraceStep> step_grid(double stretch = 1) {
  std::vector<TraceStep> steps;
  const auto scaled = [stretch](int value) { return static_cast<int>(value * stretch); };
  for (const int context : {200, 900, 3000})
    for (const int kv_heads : {1, 8, 32}) {
      const ModelShape model = with_kv_heads(llama_2_7b(), kv_heads);
      for (const int batch : {1, 12, 48})
        for (const int block_size : {1, 32})
          steps.push_back(make_step(model, Phase::decode, scaled(batch + 1), scaled(context), block_size));
      steps.push_back(make_step(model, Phase::prefill, 1, scaled(context)));
    }
  for (const int batch : {1, 8, 64})
    steps.push_back(make_step(tiny_llama(), Phase::decode, scaled(batch), scaled(500)));
  return steps;
}

}  // namespace dculab::sim::test
