// How close the CPU engine comes to this machine's limits, on random F16 weights of the TinyLlama-1.1B shape.
//
// Prints, round by round so that probe and engine see the same machine, and as medians:
//   decode, batch 1, context 64      weight and KV bytes / step time, as a share of the DRAM read bandwidth of the
//   probe decode, batch 1, context 8192    step time over what its extra KV bytes predict from the step at context 64
//   prefill, 512 tokens              FLOP / step time, as a share of the F32 multiply-add peak of the probe
// Usage: engine_bench [rounds] [model folder with config.json]
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

struct Round {
  BytesPerSecond dram;
  FlopsPerSecond peak;
  Seconds decode_short, decode_long, prefill;
};

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

Seconds step_time(const engine::LlamaWeights& weights, const engine::BenchPoint& bench_point, int repeats) {
  const Trace trace = engine::measure_steps(weights, std::vector{bench_point}, {.repeats = repeats, .warm_up = 1},
                                            [](const std::string&, double) {});
  return trace.steps.front().duration;
}

}  // namespace

int main(int argc, char* argv[]) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 3;
  const std::string folder = argc > 2 ? argv[2] : DCULAB_SOURCE_DIR "/scenarios/models/tinyllama-1.1b";
  ModelShape model = engine::read_model_shape(folder);
  model.dtype = Dtype::f16;
  model.max_position_embeddings = 2 * kLong;  // speed does not depend on what the rotations were trained for
  EngineOptions options;
  options.weights = {Dtype::f16, 0};
  options.activation_dtype = Dtype::f32;
  options.tiling = cpu_kernel_tiling(model.group_size());
  const engine::LlamaWeights weights = engine::random_weights(model, 1);
  const engine::BenchPoint decode_short = point(model, options, Phase::decode, kShort);
  const engine::BenchPoint decode_long = point(model, options, Phase::decode, kLong);
  const engine::BenchPoint prefill = point(model, options, Phase::prefill, kPrompt);
  const Bytes short_bytes = bytes_read(plan_step(model, options, decode_short.batch));
  const Bytes long_bytes = bytes_read(plan_step(model, options, decode_long.batch));
  const FlopCount prefill_flops = total_flops(plan_step(model, options, prefill.batch));

  std::vector<double> decode_share, long_ratio, prefill_share;
  for (int round = 0; round < rounds; ++round) {
    const engine::HostMeasurements host =
        engine::probe_host({.mode = engine::ProbeMode::quick, .threads = 0, .progress = {}});
    Round now;
    now.dram = host.levels.back().read.back().rate.median;
    now.peak = host.peaks.front().rate.back().rate.median;
    now.decode_short = step_time(weights, decode_short, 15);
    now.decode_long = step_time(weights, decode_long, 9);
    now.prefill = step_time(weights, prefill, 3);
    decode_share.push_back(short_bytes / now.decode_short / now.dram);
    long_ratio.push_back(now.decode_long / (now.decode_short * (long_bytes / short_bytes)));
    prefill_share.push_back(prefill_flops / now.prefill / now.peak);
    std::printf(
        "round %d: DRAM %.1f GB/s, F32 peak %.0f GFLOP/s, foreign load %.0f %% | decode %.1f tokens/s = %.1f GB/s "
        "(%.0f %%) | at %d %.1f tokens/s, %.2f of what its bytes predict | prefill %.0f tokens/s = %.0f GFLOP/s (%.0f "
        "%%)\n",
        round + 1, now.dram.value() / 1e9, now.peak.value() / 1e9, 100 * host.foreign_load,
        1 / now.decode_short.value(), (short_bytes / now.decode_short).value() / 1e9, 100 * decode_share.back(), kLong,
        1 / now.decode_long.value(), long_ratio.back(), kPrompt / now.prefill.value(),
        (prefill_flops / now.prefill).value() / 1e9, 100 * prefill_share.back());
  }
  std::printf(
      "median of %d rounds: decode reads at %.0f %% of DRAM bandwidth; context %d takes %.2f of what its bytes "
      "predict; prefill runs at %.0f %% of the F32 peak\n",
      rounds, 100 * median(decode_share), kLong, median(long_ratio), 100 * median(prefill_share));
  return 0;
}
