// Requests served with the GPU kernels, run on the host: what is preempted and computed again or swapped, what prefix
// caching finds, and what a policy drops changes no logits beyond roundings.
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/scheduler.hpp"
#include "core/serving_loop.hpp"
#include "core/workload.hpp"
#include "engine/checkpoint/random_weights.hpp"
#include "engine/executors/cpu_executor.hpp"
#include "engine/generate/wall_clock.hpp"
#include "model/plan_step.hpp"
#include "tests/engine/support/gpu_latents.hpp"
#include "tests/engine/support/small_gpu_model.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

constexpr int kBlock = 4, kManyBlocks = 400, kFewBlocks = 24, kHostBlocks = 100;

// Keeps the logits behind every token, and decides the next one by its place alone, so that all runs compute the same.
class KeptLogits final : public TokenSource {
 public:
  explicit KeptLogits(const ModelExecutor& executor) : executor_(executor) {}

  TokenId next_token(const Sequence& sequence, int row) override {
    const auto logits = executor_.logits(row);
    const auto id = static_cast<int>(sequence.request.id);
    rows[{id, sequence.num_tokens()}] = {logits.begin(), logits.end()};
    return (31 * id + 7 * sequence.num_tokens()) % 96;
  }

  std::map<std::pair<int, int>, Logits> rows;  // by request and tokens before

 private:
  const ModelExecutor& executor_;
};

struct ServedRows {
  std::map<std::pair<int, int>, Logits> rows;
  int preemptions = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t swaps = 0;
};

EngineOptions serving_options(const ModelShape& shape) {
  EngineOptions options;
  options.block_size = kBlock;
  options.kv_cache_dtype = Dtype::f16;
  options.activation_dtype = Dtype::f32;
  options.weights = shape.layer_format();
  options.max_num_seqs = 6;
  options.max_num_batched_tokens = 40;  // prompts in chunks
  return options;
}

// Two prefixes that the prompts begin with; `samples` of each prompt.
ServedRows serve_rows(const ModelShape& shape, const EngineOptions& options, ModelExecutor& executor, int samples = 1) {
  RequestWorkload workload{.requests = 8};
  workload.prompt = {LengthKind::uniform, 1, 0, 17, 48};
  workload.output = {LengthKind::uniform, 1, 0, 2, 16};
  workload.vocab_size = 96;
  workload.prefix_tokens = 16;
  workload.prefixes = 2;
  Scheduler scheduler(options, {.num_blocks = executor.kv_cache().num_blocks,
                                .max_position_embeddings = shape.max_position_embeddings,
                                .num_host_blocks = executor.kv_cache().num_host_blocks});
  KeptLogits kept(executor);
  WallClock clock;
  ServingLoop loop({planner_of(shape, options), scheduler, executor, kept, clock}, {});
  RequestSource source(workload);
  while (std::optional<Request> request = source.next()) {
    request->id *= samples, request->n = samples;
    REQUIRE_FALSE(loop.submit(*std::move(request)));
  }
  loop.run();
  const ServingReport& report = loop.report();
  return {std::move(kept.rows), report.num_preemptions, report.num_cached_tokens, report.swaps.preemptions};
}

ServedRows serve_on_cpu(const ModelWeights& weights, const EngineOptions& options, int samples = 1) {
  CpuExecutor executor(weights,
                       {.num_blocks = kManyBlocks,
                        .block_size = kBlock,
                        .dtype = options.kv_cache_dtype,
                        .policy = options.kv_retention.policy},
                       2);
  return serve_rows(weights.shape, options, executor, samples);
}

ServedRows serve_on_gpu(const ModelWeights& weights, const EngineOptions& options, int num_blocks, int samples = 1) {
  const bool swaps = options.preemption_mode == PreemptionMode::swap;
  GpuExecutor executor(
      host_gpu(), weights,
      {.num_blocks = num_blocks,
       .block_size = kBlock,
       .dtype = options.kv_cache_dtype,
       .num_host_blocks = swaps ? kHostBlocks : 0,
       .policy = options.kv_retention.policy},
      {.activation_dtype = Dtype::f32,
       .limits = {.max_num_batched_tokens = options.max_num_batched_tokens, .max_num_seqs = options.max_num_seqs}});
  return serve_rows(weights.shape, options, executor, samples);
}

void check_alike(const ServedRows& actual, const ServedRows& expected, double tolerance) {
  REQUIRE(actual.rows.size() == expected.rows.size());
  for (const auto& [place, logits] : expected.rows) {
    INFO("request " << place.first << " after " << place.second << " tokens");
    CHECK(relative_difference({actual.rows.at(place)}, {logits}) <= tolerance);
  }
}

void check_serving(const ModelWeights& weights, double tolerance, const KvRetention& retention = {}, int samples = 1) {
  EngineOptions options = serving_options(weights.shape);
  options.kv_retention = retention;
  const ServedRows expected = serve_on_cpu(weights, options, samples);
  CHECK(expected.preemptions == 0);
  const ServedRows roomy = serve_on_gpu(weights, options, kManyBlocks, samples);
  CHECK(roomy.preemptions == 0);
  check_alike(roomy, expected, tolerance);
  const ServedRows cramped = serve_on_gpu(weights, options, kFewBlocks, samples);
  CHECK(cramped.preemptions > 0);
  check_alike(cramped, expected, tolerance);
  options.enable_prefix_caching = true;
  const ServedRows cached = serve_on_gpu(weights, options, kManyBlocks, samples);
  CHECK(cached.cached_tokens > 0);
  check_alike(cached, expected, tolerance);
  const ServedRows both = serve_on_gpu(weights, options, kFewBlocks, samples);
  CHECK(both.preemptions > 0);
  CHECK(both.cached_tokens > 0);
  check_alike(both, expected, tolerance);
  options.preemption_mode = PreemptionMode::swap;
  const ServedRows swapped = serve_on_gpu(weights, options, kFewBlocks, samples);
  CHECK(swapped.swaps > 0);
  check_alike(swapped, expected, tolerance);
}

// With little memory too: what is computed again comes to the same.
void check_policy(const ModelWeights& weights, const KvRetention& retention, Dtype kv_dtype, double tolerance) {
  INFO(name(retention.policy) << ", KV in " << name(kv_dtype));
  EngineOptions options = serving_options(weights.shape);
  options.kv_retention = retention;
  options.kv_cache_dtype = kv_dtype;
  REQUIRE(problems(options).empty());
  const ServedRows expected = serve_on_cpu(weights, options);
  check_alike(serve_on_gpu(weights, options, kManyBlocks), expected, tolerance);
  const ServedRows cramped = serve_on_gpu(weights, options, 18);
  CHECK(cramped.preemptions > 0);
  check_alike(cramped, expected, tolerance);
}

}  // namespace

// Without experts: roundings may move a token to another that is nearly as good.
TEST_CASE("latents on --device host-gpu: preemption, swapping and prefix caching change no logits", "[gpu]") {
  ModelShape shape = latent_shape();
  for (LayerKind& kind : shape.kinds) kind.experts.reset();
  check_serving(random_weights(shape, 41), latent_tolerance(shape, Dtype::f32));
}

TEST_CASE("K and V on --device host-gpu: preemption, swapping and prefix caching change no logits", "[gpu]") {
  const ModelWeights weights = random_weights(small_model(2), 42);
  check_serving(weights, (3 * weights.shape.num_layers() + 1) * 0x1p-11);
}

// Bounds of keys go where the blocks go: to a prompt's other samples, to who begins with its prefix, to the host and
// back.
TEST_CASE("critical blocks on --device host-gpu: samples, swapping and prefix caching change no logits", "[gpu]") {
  const ModelWeights weights = random_weights(small_model(2), 47);
  const KvRetention retention{.policy = RetentionPolicy::critical_blocks, .kv_budget = 0.4};
  check_serving(weights, (3 * weights.shape.num_layers() + 1) * 0x1p-11, retention, 2);
}

// Texts are longer than the model was trained on.
TEST_CASE("policies on --device host-gpu keep what the CPU keeps", "[gpu]") {
  ModelShape shape = small_model(2);
  const double tolerance = (3 * shape.num_layers() + 1) * 0x1p-11;
  const KvRetention window{.policy = RetentionPolicy::window, .window_tokens = 29};
  const KvRetention hitters{.policy = RetentionPolicy::heavy_hitters, .window_tokens = 15, .heavy_hitter_tokens = 16};
  check_policy(random_weights(shape, 43), window, Dtype::f16, tolerance);
  check_policy(random_weights(shape, 44), hitters, Dtype::f16, tolerance);
  shape.max_position_embeddings = 40;
  const KvRetention sinks{.policy = RetentionPolicy::sinks, .sink_tokens = 5, .window_tokens = 26};
  check_policy(random_weights(shape, 45), sinks, Dtype::f16, tolerance);
  shape.kinds[0].gqa().position.kind = PositionKind::alibi;
  check_policy(random_weights(shape, 46), sinks, Dtype::bf16, 8 * tolerance);
}

}  // namespace dculab::engine
