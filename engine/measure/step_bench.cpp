#include "engine/measure/step_bench.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <tuple>

#include "core/error.hpp"
#include "engine/measure/scattered_batch.hpp"
#include "engine/measure/trace_header.hpp"
#include "engine/parallel/ranked_executor.hpp"
#include "engine/probe/device_clocks.hpp"
#include "engine/regroup/mean_pool.hpp"
#include "model/kv/kv_plans.hpp"
#include "model/plan_step.hpp"

namespace dculab::engine {
namespace {

constexpr int kStepsPerRound = 3;
constexpr Seconds kLongStep{0.02};

// Points that one executor can run: the same KV heads, block size, KV dtype, tokens of a kivi residual, and division.
using VariantKey = std::tuple<int, int, Dtype, int, Division>;

struct Variant {
  std::vector<std::size_t> points;
  int num_blocks = 0;
  EngineOptions options;                          // with limits that let the largest batch through
  RetentionPolicy policy = RetentionPolicy::all;  // of a point that keeps something of each block
};

// What one point has been measured at, round by round.
struct Samples {
  std::vector<double> durations;
  std::vector<std::vector<double>> op_durations;  // [ops][rounds]
  ExpertHistogram experts;
};

[[nodiscard]] VariantKey variant_of(const BenchPoint& point) {
  return {point.model.heads().num_key_value_heads, point.options.block_size, point.options.kv_cache_dtype,
          point.options.kv_residual_tokens, point.division};
}

[[nodiscard]] ModelShape planned_model(const BenchPoint& point, const ExpertLoad& load) {
  return part_of(point.model, point.options.weights, point.division, load);
}

[[nodiscard]] double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double rank = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(rank);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (rank - static_cast<double>(below)) * (values[above] - values[below]);
}

void add_sample(Samples& samples, const StepResult& result) {
  samples.durations.push_back(result.duration.value());
  samples.op_durations.resize(result.op_durations.size());
  for (std::size_t op = 0; op < result.op_durations.size(); ++op)
    samples.op_durations[op].push_back(result.op_durations[op].value());
}

// Where timing the ops slows a step. The first step makes the events and is not counted; of the others, the fastest.
[[nodiscard]] std::vector<Seconds> time_ops(ModelExecutor& executor, const StepPlan& plan) {
  executor.set_op_timing(OpTiming::on);
  (void)executor.run(plan);
  StepResult best = executor.run(plan);
  for (int step = 1; step < kStepsPerRound && best.duration < kLongStep; ++step)
    if (StepResult next = executor.run(plan); next.duration < best.duration) best = std::move(next);
  return best.op_durations;
}

// The fastest of a few steps in a row: an interruption only ever slows one. Long steps are run once, they average
// over interruptions themselves. Ops are timed in a step of their own where that slows the step.
void measure_point(ModelExecutor& executor, const BenchPoint& point, const BenchOptions& options,
                   std::mt19937_64& random, Samples& samples) {
  const int block_size = point.options.block_size;
  const StepPlan plan =
      plan_step(planned_model(point, point.options.expert_load), point.options,
                scattered_batch(point.batch, point.model, block_size, executor.kv_cache().num_blocks, random));
  executor.set_op_timing(OpTiming::off);
  (void)executor.take_expert_histogram();  // that of another point
  for (int step = 0; step < options.warm_up; ++step) (void)executor.run(plan);
  StepResult best = executor.run(plan);
  for (int step = 1; step < kStepsPerRound && best.duration < kLongStep; ++step)
    if (StepResult next = executor.run(plan); next.duration < best.duration) best = std::move(next);
  if (best.op_durations.empty()) best.op_durations = time_ops(executor, plan);
  samples.experts.add(executor.take_expert_histogram());
  add_sample(samples, best);
}

// The load that the step is priced with: that of its own tokens. Too few of them are counted for the share of each
// expert, enough for how many are touched.
[[nodiscard]] ExpertLoad load_of(const BenchPoint& point, const ExpertHistogram& experts) {
  for (const LayerKind& kind : point.model.kinds)
    if (kind.experts && !experts.is_empty())
      return load_touching(experts.distinct_experts(), kind.experts->num_experts, kind.experts->num_experts_per_tok,
                           static_cast<double>(point.batch.num_tokens()));
  return point.options.expert_load;
}

[[nodiscard]] TraceStep to_trace_step(const BenchPoint& point, const Samples& samples) {
  TraceStep step;
  step.id = point.id;
  step.options = point.options;
  step.options.expert_load = load_of(point, samples.experts);
  step.model = planned_model(point, step.options.expert_load);
  step.experts = samples.experts;
  step.batch = point.batch;
  step.repeats = static_cast<int>(samples.durations.size());
  step.duration = Seconds(quantile(samples.durations, 0.5));
  step.spread = Seconds((quantile(samples.durations, 0.75) - quantile(samples.durations, 0.25)) / 2);
  const StepPlan plan = plan_step(step.model, point.options, point.batch);
  for (std::size_t op = 0; op < plan.ops.size(); ++op) {
    step.op_names.emplace_back(plan.ops[op].name);
    step.op_durations.emplace_back(quantile(samples.op_durations[op], 0.5));
  }
  return step;
}

[[nodiscard]] std::map<VariantKey, Variant> group_points(std::span<const BenchPoint> points) {
  std::map<VariantKey, Variant> variants;
  for (std::size_t index = 0; index < points.size(); ++index) {
    Variant& variant = variants[variant_of(points[index])];
    variant.points.push_back(index);
    const Batch& batch = points[index].batch;
    variant.num_blocks = std::max(variant.num_blocks, blocks_of(batch, points[index].options.block_size));
    const RetentionPolicy policy = points[index].options.kv_retention.policy;
    if (kv_policy_plan(policy).bytes_beside_block != nullptr) variant.policy = policy;
    const EngineOptions so_far = variant.options;
    variant.options = points[index].options;
    const bool first = variant.points.size() == 1;
    variant.options.max_num_batched_tokens = std::max(first ? 1 : so_far.max_num_batched_tokens, tokens_of(batch));
    variant.options.max_num_seqs = std::max(first ? 1 : so_far.max_num_seqs, static_cast<int>(batch.sequences.size()));
    const int so_many = first ? 0 : so_far.speculative_config.shape.num_tokens();  // the executor has room for them
    variant.options.speculative_config.shape = chain_shape(std::max(so_many, decode_tokens_of(batch) - 1));
  }
  return variants;
}

[[nodiscard]] TraceHeader make_header(const BenchOptions& options, const ModelExecutor& executor) {
  const bool on_cpu = options.device.kind == DeviceKind::cpu;
  std::string timing = "median of " + std::to_string(options.repeats) + " rounds, each after " +
                       std::to_string(options.warm_up) + " warm-up steps the best of " +
                       std::to_string(kStepsPerRound) + " (steps over 20 ms: of one), std::chrono::steady_clock";
  if (!on_cpu) timing += "; ops by the device's events, in a step of their own";
  if (const std::string clocks = device_clocks(options.device); !clocks.empty())
    timing += "; right after the last step " + clocks;
  return trace_header(executor, std::move(timing));
}

}  // namespace

Trace measure_steps(const ModelWeights& weights, std::span<const BenchPoint> points, const BenchOptions& options,
                    const BenchProgress& progress) {
  const int threads = options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
  const OpenDevice device = open_device(options.device);
  const std::map<VariantKey, Variant> variants = group_points(points);
  Trace trace;
  std::map<int, ModelWeights> regrouped_weights;
  for (const BenchPoint& point : points)
    if (const int kv_heads = point.model.heads().num_key_value_heads; !regrouped_weights.contains(kv_heads))
      regrouped_weights.emplace(
          kv_heads, kv_heads == weights.shape.heads().num_key_value_heads ? weights : regrouped(weights, kv_heads));
  std::mt19937_64 random(options.seed);
  std::vector<Samples> samples(points.size());
  const double total = static_cast<double>(points.size()) * options.repeats;
  double done = 0;
  for (int round = 0; round < options.repeats; ++round)
    for (const auto& [key, variant] : variants) {
      const auto& [kv_heads, block_size, kv_dtype, residual_tokens, division] = key;
      const KvCacheOptions kv{.num_blocks = variant.num_blocks,
                              .block_size = block_size,
                              .dtype = kv_dtype,
                              .max_num_seqs = variant.options.max_num_seqs,
                              .residual_tokens = residual_tokens,
                              .policy = variant.policy};
      const auto executor =
          make_divided_executor(device, regrouped_weights.at(kv_heads), kv, variant.options, threads, division);
      executor->fill_kv_cache(random());
      for (const std::size_t index : variant.points) {
        measure_point(*executor, points[index], options, random, samples[index]);
        progress("measuring " + points[index].id, ++done / total);
      }
      trace.header = make_header(options, *executor);
    }
  for (std::size_t index = 0; index < points.size(); ++index)
    trace.steps.push_back(to_trace_step(points[index], samples[index]));
  return trace;
}

}  // namespace dculab::engine
