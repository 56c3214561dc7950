// How close the CPU engine comes to this machine's limits, on random weights of the TinyLlama-1.1B shape in each
// format.
//
// For each format, in rounds that take turns so that all of them and the probe see the same machine; the table has the
// medians:
//   decode, batch 1, context 64: weight and KV bytes / step time, as a share of the DRAM bandwidth that the probe reads
//     just before and just after, the mean of both; the same of the products alone (their bytes / their time), and what
//     the step spends on all else
//   decode, batch 1, context 8192: step time over what its bytes predict from the step at context 64
//   prefill, 512 tokens: FLOP / step time, as a share of the F32 multiply-add peak of the probe
// Usage: engine_bench [rounds = 3] [threads = 2] [formats = int4_int8,int8_int8,f16_exact,bf16_exact]
//                     [steps = decode,long,prefill] [model folder with config.json]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "core/activation_mode.hpp"
#include "engine/checkpoint/random_weights.hpp"
#include "engine/measure/step_bench.hpp"
#include "engine/probe/core_probe.hpp"
#include "engine/probe/foreign_load.hpp"
#include "engine/probe/memory_probe.hpp"
#include "engine/probe/topology.hpp"
#include "model/folder/model_config.hpp"
#include "model/plan_step.hpp"

namespace {

using namespace dculab;

constexpr int kShort = 64;
constexpr int kLong = 8192;
constexpr int kPrompt = 512;
constexpr engine::Effort kEffort{Seconds(4e-3), 9, 3, 1, kGiB, 1, 2};

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::vector<std::string> words(const std::string& list) {
  std::vector<std::string> found;
  std::stringstream stream(list);
  for (std::string word; std::getline(stream, word, ',');) found.push_back(word);
  return found;
}

// Weights and KV that an op must read.
Bytes bytes_read(const Op& op) {
  Bytes total;
  for (const Operand& operand : op.operands())
    if (operand.role == OperandRole::weight || operand.role == OperandRole::kv_read) total += operand.unique * op.count;
  return total;
}

Bytes bytes_read(const StepPlan& plan) {
  Bytes total;
  for (const Op& op : plan.ops) total += bytes_read(op);
  return total;
}

ModelShape shape_in(const std::string& folder, Dtype weights) {
  ModelShape shape = read_model_shape(folder);
  shape.max_position_embeddings = 2 * kLong;  // speed does not depend on what the rotations were trained for
  shape.dtype = weights;
  if (weights == Dtype::int4 || weights == Dtype::int8) {
    shape.dtype = Dtype::f16;
    shape.quantization = WeightFormat{weights, weights == Dtype::int4 ? 128 : -1};
    shape.quantized_lm_head = true;
  } else if (weights == Dtype::fp8_e4m3) {
    shape.dtype = Dtype::bf16;
    shape.quantization = WeightFormat{weights, 0};
  }
  return shape;
}

// One format of weights and activations, and what its rounds gave.
struct Format {
  std::string name;
  engine::ModelWeights weights;
  EngineOptions options;
  std::vector<double> dram, tokens, decode, products, rest, longer, prefill_tokens, prefill;

  Format(const std::string& folder, const std::string& name_, Dtype stored, ActivationMode activations)
      : name(name_), weights(engine::random_weights(shape_in(folder, stored), 1)) {
    options.weights = weights.shape.layer_format();
    options.activations = activations;
    options.activation_dtype = Dtype::f32;
  }

  [[nodiscard]] engine::BenchPoint point(Phase phase, int context) const {
    return {std::to_string(context), weights.shape, options, uniform_batch(phase, 1, context)};
  }
  [[nodiscard]] StepPlan plan(Phase phase, int context) const {
    return plan_step(weights.shape, options, uniform_batch(phase, 1, context));
  }
  [[nodiscard]] TraceStep measure(Phase phase, int context, int repeats, int threads) const {
    return engine::measure_steps(weights, std::vector{point(phase, context)},
                                 {.threads = threads, .repeats = repeats, .warm_up = 1},
                                 [](const std::string&, double) {})
        .steps.front();
  }
};

// What the machine can do, as the probe finds it.
class Limits {
 public:
  explicit Limits(int threads)
      : threads_(threads), memory_(engine::read_topology(), engine::PageSize::huge, kEffort, *make_team()) {}

  [[nodiscard]] BytesPerSecond dram() { return memory_.read_dram(*make_team()).rate.median; }
  [[nodiscard]] FlopsPerSecond f32_peak() const {
    return engine::measure_arithmetic(*make_team(), kernels::cpu::Arithmetic::f32_fma, kEffort).rate.median;
  }

 private:
  // Of the moment: a team holds its CPUs for as long as it exists.
  [[nodiscard]] std::unique_ptr<engine::Team> make_team() const { return std::make_unique<engine::Team>(threads_); }

  int threads_;
  engine::MemoryProbe memory_;
};

// Returns the time of the step.
Seconds measure_decode(Format& format, Limits& limits, int threads) {
  const StepPlan plan = format.plan(Phase::decode, kShort);
  const BytesPerSecond before = limits.dram();
  const TraceStep step = format.measure(Phase::decode, kShort, 15, threads);
  const BytesPerSecond dram = (before + limits.dram()) / 2;
  Bytes weights;
  Seconds products;
  for (std::size_t i = 0; i < plan.ops.size(); ++i)
    if (plan.ops[i].kind == OpKind::matmul) weights += bytes_read(plan.ops[i]), products += step.op_durations[i];
  format.dram.push_back(dram.value() / 1e9);
  format.tokens.push_back(1 / step.duration.value());
  format.decode.push_back(bytes_read(plan) / step.duration / dram);
  format.products.push_back(weights / products / dram);
  format.rest.push_back(1e6 * (step.duration - products).value());
  return step.duration;
}

void measure_long(Format& format, Seconds decode, int threads) {
  const double more = bytes_read(format.plan(Phase::decode, kLong)) / bytes_read(format.plan(Phase::decode, kShort));
  format.longer.push_back(format.measure(Phase::decode, kLong, 9, threads).duration / (decode * more));
}

void measure_prefill(Format& format, FlopsPerSecond peak, int threads) {
  const Seconds step = format.measure(Phase::prefill, kPrompt, 3, threads).duration;
  format.prefill_tokens.push_back(kPrompt / step.value());
  format.prefill.push_back(total_flops(format.plan(Phase::prefill, kPrompt)) / step / peak);
}

void print(const std::vector<Format>& formats) {
  std::printf("%-12s %10s %9s %8s %9s %8s %11s %13s %8s\n", "weights, x", "DRAM GB/s", "tokens/s", "of DRAM",
              "products", "rest us", "8192: of it", "prefill tok/s", "of F32");
  for (const Format& each : formats)
    std::printf("%-12s %10.1f %9.1f %7.0f%% %8.0f%% %8.0f %11.2f %13.0f %7.0f%%\n", each.name.c_str(),
                median(each.dram), median(each.tokens), 100 * median(each.decode), 100 * median(each.products),
                median(each.rest), median(each.longer), median(each.prefill_tokens), 100 * median(each.prefill));
}

std::vector<Format> make_formats(const std::string& folder, const std::string& list) {
  std::vector<Format> formats;
  for (const std::string& word : words(list)) {
    const std::size_t end = word.rfind('_');
    const std::optional<Dtype> stored = parse_dtype(word.substr(0, end));
    const auto activations = parse_activation_mode(end == std::string::npos ? "" : word.substr(end + 1));
    if (!stored || !activations) {
      std::fprintf(stderr, "'%s' is not a format; use int4_int8, int4_exact, fp8_e4m3_exact, f16_exact, ...\n", word.c_str());
      std::exit(2);
    }
    formats.emplace_back(folder, word, *stored, *activations);
  }
  return formats;
}

}  // namespace

int main(int argc, char* argv[]) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 3;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 2;
  const std::string steps = argc > 4 ? argv[4] : "decode,long,prefill";
  const auto wanted = [&](const char* step) { return steps.find(step) != std::string::npos; };
  std::vector<Format> formats = make_formats(argc > 5 ? argv[5] : DCULAB_SOURCE_DIR "/scenarios/models/tinyllama-1.1b",
                                             argc > 3 ? argv[3] : "int4_int8,int8_int8,f16_exact,bf16_exact");
  Limits limits(threads);
  for (int round = 0; round < rounds; ++round) {
    const engine::ForeignLoad load;
    const FlopsPerSecond peak = limits.f32_peak();
    for (Format& format : formats) {
      const Seconds decode = measure_decode(format, limits, threads);
      if (wanted("long")) measure_long(format, decode, threads);
      if (wanted("prefill")) measure_prefill(format, peak, threads);
    }
    std::printf("round %d: F32 peak %.0f GFLOP/s, foreign load %.0f %%\n", round + 1, peak.value() / 1e9,
                100 * load.share());
  }
  print(formats);
  return 0;
}
