// How close the CPU engine comes to this machine's limits, on random F16 weights of the TinyLlama-1.1B shape.
//
// Prints, round by round so that probe and engine see the same machine, and as medians:
//   decode, batch 1, context 64: weight and KV bytes / step time, as a share of the DRAM read bandwidth of the probe
//   decode, batch 1, context 8192: step time over what its bytes predict from the step at context 64
//   prefill, 512 tokens: FLOP / step time, as a share of the F32 multiply-add peak of the probe
// Usage: engine_bench [rounds = 3] [threads = 2] [model folder with config.json]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/step_plan.hpp"
#include "engine/checkpoint/model_config.hpp"
#include "engine/checkpoint/random_weights.hpp"
#include "engine/measure/step_bench.hpp"
#include "engine/probe/probe.hpp"

namespace {

using namespace dculab;

constexpr int kShort = 64;
constexpr int kLong = 8192;
constexpr int kPrompt = 512;

template <class Value>
Value median(std::vector<Value> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Weights and KV that a decode step must read.
Bytes bytes_read(const StepPlan& plan) {
  Bytes total;
  for (const Op& op : plan.ops)
    for (const Operand& operand : op.operands())
      if (operand.role == OperandRole::weight || operand.role == OperandRole::kv_read)
        total += operand.unique * op.count;
  return total;
}

engine::BenchPoint point(const ModelShape& model, const EngineOptions& options, Phase phase, int context) {
  return {std::to_string(context), model, options, uniform_batch(phase, 1, context)};
}

Seconds step_time(const engine::ModelWeights& weights, const engine::BenchPoint& bench_point, int repeats,
                  int threads) {
  const Trace trace =
      engine::measure_steps(weights, std::vector{bench_point}, {.threads = threads, .repeats = repeats, .warm_up = 1},
                            [](const std::string&, double) {});
  return trace.steps.front().duration;
}

// The steps that are timed, and what they must read or compute.
struct Work {
  engine::BenchPoint decode_short, decode_long, prefill;
  Bytes short_bytes, long_bytes;
  FlopCount prefill_flops;
};

Work plan_work(const ModelShape& model) {
  EngineOptions options;
  options.weights = {Dtype::f16, 0};
  options.activation_dtype = Dtype::f32;
  options.tiling = cpu_kernel_tiling(model.group_size());
  const auto planned = [&](const engine::BenchPoint& each) { return plan_step(model, options, each.batch); };
  Work work;
  work.decode_short = point(model, options, Phase::decode, kShort);
  work.decode_long = point(model, options, Phase::decode, kLong);
  work.prefill = point(model, options, Phase::prefill, kPrompt);
  work.short_bytes = bytes_read(planned(work.decode_short));
  work.long_bytes = bytes_read(planned(work.decode_long));
  work.prefill_flops = total_flops(planned(work.prefill));
  return work;
}

// Shares of this machine's limits in one round.
struct Shares {
  double decode = 0, longer = 0, prefill = 0;
};

Shares run_round(const engine::ModelWeights& weights, const Work& work, int threads) {
  const engine::HostMeasurements host =
      engine::probe_host({.mode = engine::ProbeMode::quick, .threads = threads, .progress = {}});
  const BytesPerSecond dram = host.levels.back().read.back().rate.median;
  const FlopsPerSecond peak = host.peaks.front().rate.back().rate.median;
  const Seconds decode_short = step_time(weights, work.decode_short, 15, threads);
  const Seconds decode_long = step_time(weights, work.decode_long, 9, threads);
  const Seconds prefill = step_time(weights, work.prefill, 3, threads);
  const Shares shares{work.short_bytes / decode_short / dram,
                      decode_long / (decode_short * (work.long_bytes / work.short_bytes)),
                      work.prefill_flops / prefill / peak};
  std::printf("DRAM %.1f GB/s, F32 peak %.0f GFLOP/s, foreign load %.0f %%\n", dram.value() / 1e9, peak.value() / 1e9,
              100 * host.foreign_load);
  std::printf("  decode %.1f tokens/s = %.1f GB/s, %.0f %% of DRAM\n", 1 / decode_short.value(),
              (work.short_bytes / decode_short).value() / 1e9, 100 * shares.decode);
  std::printf("  decode at %d: %.1f tokens/s, %.2f of what its bytes predict\n", kLong, 1 / decode_long.value(),
              shares.longer);
  std::printf("  prefill %.0f tokens/s = %.0f GFLOP/s, %.0f %% of the F32 peak\n", kPrompt / prefill.value(),
              (work.prefill_flops / prefill).value() / 1e9, 100 * shares.prefill);
  return shares;
}

}  // namespace

int main(int argc, char* argv[]) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 3;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 2;
  const std::string folder = argc > 3 ? argv[3] : DCULAB_SOURCE_DIR "/scenarios/models/tinyllama-1.1b";
  ModelShape model = engine::read_model_shape(folder);
  model.dtype = Dtype::f16;
  model.max_position_embeddings = 2 * kLong;  // speed does not depend on what the rotations were trained for
  const engine::ModelWeights weights = engine::random_weights(model, 1);
  const Work work = plan_work(model);
  std::vector<double> decode, longer, prefill;
  for (int round = 0; round < rounds; ++round) {
    const Shares shares = run_round(weights, work, threads);
    decode.push_back(shares.decode);
    longer.push_back(shares.longer);
    prefill.push_back(shares.prefill);
  }
  std::printf(
      "median of %d rounds, %d threads: decode reads at %.0f %% of DRAM bandwidth; context %d takes %.2f of what "
      "its bytes predict; prefill runs at %.0f %% of the F32 peak\n",
      rounds, threads, 100 * median(decode), kLong, median(longer), 100 * median(prefill));
  return 0;
}
