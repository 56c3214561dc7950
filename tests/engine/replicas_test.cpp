// Several replicas behind a router, and prefill and decode apart: every text is what one engine makes of its prompt.
#include <map>
#include <numeric>
#include <string>

#include "core/error.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/random_weights.hpp"
#include "engine/executors/cpu_executor.hpp"
#include "engine/generate/logits_source.hpp"
#include "engine/generate/serve_replicas.hpp"
#include "model/plan_step.hpp"
#include "tests/engine/support/golden_steps.hpp"
#include "tests/engine/support/quantized_folders.hpp"
#include "tests/engine/support/small_gpu_model.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

using Texts = std::map<SequenceId, std::vector<TokenId>>;

// Prompts of 5 to 80 tokens, some of which begin alike; sampled and greedy, some with stop tokens.
std::vector<Request> requests_for(const ModelShape& shape) {
  std::vector<Request> requests;
  for (int index = 0; index < 12; ++index) {
    Request request;
    request.id = index;
    const std::vector<TokenId> common = random_tokens(40, shape.vocab_size), own = random_tokens(200, shape.vocab_size);
    if (index % 3 == 0) request.prompt_token_ids = common;
    request.prompt_token_ids.insert(request.prompt_token_ids.end(), own.begin() + 10 * index,
                                    own.begin() + 10 * index + 5 + 3 * index);
    request.max_tokens = 1 + 3 * index;
    if (index % 2 == 1) request.sampling = {.temperature = 1.0, .seed = static_cast<std::uint64_t>(index)};
    if (index % 4 == 3) request.stop_tokens = {own[0], own[1], own[2]};
    request.arrival = Seconds(0.002 * (index / 3));
    requests.push_back(request);
  }
  return requests;
}

NextRequest one_by_one(const std::vector<Request>& requests) {
  return [&requests, next = std::size_t{}]() mutable {
    return next < requests.size() ? std::optional(requests[next++]) : std::nullopt;
  };
}

EngineOptions replica_options(const ModelShape& shape, Dtype dtype = Dtype::f32, int block_size = 4) {
  EngineOptions options;
  options.block_size = block_size;
  options.kv_cache_dtype = dtype;
  options.activation_dtype = Dtype::f32;
  options.weights = shape.layer_format();
  options.max_num_seqs = 8;
  options.max_num_batched_tokens = 64;
  return options;
}

// On one executor, a request at a time.
Texts texts_alone(const ModelWeights& weights, const EngineOptions& options, const std::vector<Request>& requests) {
  const KvCacheOptions kv{.num_blocks = 200, .block_size = options.block_size, .dtype = options.kv_cache_dtype};
  CpuExecutor executor(weights, kv, 1);
  Texts texts;
  for (Request request : requests) {
    request.arrival = {};
    Scheduler scheduler(options, {.num_blocks = 200, .max_position_embeddings = weights.shape.max_position_embeddings});
    LogitsSource tokens(executor);
    WallClock clock;
    ServingLoop loop({planner_of(weights.shape, options), scheduler, executor, tokens, clock},
                     {.on_finished = [&](const Sequence& sequence) { texts[request.id] = sequence.tokens; }});
    REQUIRE_FALSE(loop.submit(request));
    loop.run();
  }
  return texts;
}

struct ServedReplicas {
  Texts texts;
  ServedWorkload run;
};

ServedReplicas serve_replicas(const ModelWeights& weights, const EngineOptions& options, const ReplicaChoices& choices,
                              const std::vector<Request>& requests, int num_blocks = 200) {
  const auto replicas = open_replicas(weights, options, DraftWeights(), num_blocks, 1, choices.replicas());
  REQUIRE(problems(choices, options).empty());
  ServedReplicas served;
  const auto finish = [&](const Sequence& sequence) {
    CHECK(sequence.token_times.size() == static_cast<std::size_t>(sequence.num_generated()));
    CHECK(std::ranges::is_sorted(sequence.token_times));
    CHECK(sequence.token_times.front() >= sequence.request.arrival);
    CHECK(served.texts.emplace(sequence.request.id, sequence.tokens).second);
  };
  served.run = serve_on_replicas(*replicas, options, choices, one_by_one(requests), {.on_finished = finish});
  return served;
}

std::int64_t sum_of(const ServedWorkload& run, std::int64_t ServedReplica::*figure) {
  std::int64_t sum = 0;
  for (const ServedReplica& replica : run.replicas) sum += replica.*figure;
  return sum;
}

ModelWeights text_weights() { return load_weights(kGoldenFolder / "text"); }

}  // namespace

TEST_CASE("replicas give every request the text that it gets alone, however they are routed", "[replicas]") {
  const ModelWeights weights = text_weights();
  const EngineOptions options = replica_options(weights.shape);
  const std::vector<Request> requests = requests_for(weights.shape);
  const Texts expected = texts_alone(weights, options, requests);
  for (const Routing routing : {Routing::round_robin, Routing::random, Routing::least_requests, Routing::least_tokens,
                                Routing::prefix_affinity})
    for (const int count : {2, 3}) {
      INFO(name(routing) << ", " << count << " replicas");
      const ServedReplicas served =
          serve_replicas(weights, options, {.data_parallel_size = count, .routing = routing}, requests);
      CHECK(served.texts == expected);
      REQUIRE(served.run.replicas.size() == static_cast<std::size_t>(count));
      CHECK(sum_of(served.run, &ServedReplica::requests) == std::ssize(requests));
      CHECK(sum_of(served.run, &ServedReplica::num_steps) == served.run.num_steps);
      if (routing == Routing::round_robin)
        for (const ServedReplica& replica : served.run.replicas)
          CHECK(replica.requests == std::ssize(requests) / count);
    }
}

TEST_CASE("each replica drafts for its own requests, and greedy texts stay the same", "[replicas]") {
  const ModelWeights weights = text_weights();
  EngineOptions options = replica_options(weights.shape);
  std::vector<Request> requests = requests_for(weights.shape);
  for (Request& request : requests) request.sampling = {};
  const Texts expected = texts_alone(weights, options, requests);
  options.speculative_config.method = SpeculativeMethod::ngram;
  options.speculative_config.shape = chain_shape(3);
  const ServedReplicas served = serve_replicas(weights, options, {.data_parallel_size = 2}, requests);
  CHECK(served.texts == expected);
  CHECK(served.run.drafts.num_drafts > 0);
  CHECK_THAT(problems({.prefill_replicas = 1, .decode_replicas = 1}, options).front(),
             ContainsSubstring("speculative_config needs"));
}

TEST_CASE("handed-over KV goes on as if it had never moved, in every format and block size", "[replicas]") {
  const ModelWeights weights = text_weights();
  const std::vector<Request> requests = requests_for(weights.shape);
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::fp8_e4m3, Dtype::int8})
    for (const int block_size : {1, 16}) {
      INFO(name(dtype) << ", block size " << block_size);
      EngineOptions options = replica_options(weights.shape, dtype, block_size);
      const Texts expected = texts_alone(weights, options, requests);
      const ReplicaChoices apart{.prefill_replicas = 1, .decode_replicas = 1};
      const ServedReplicas served = serve_replicas(weights, options, apart, requests, 800 / block_size);
      CHECK(served.texts == expected);
      REQUIRE(served.run.replicas.size() == 2);
      const ServedReplica& prefill = served.run.replicas[0];
      CHECK(prefill.role == ReplicaRole::prefill);
      CHECK(prefill.requests == std::ssize(requests));
      CHECK(prefill.handed_over == served.run.replicas[1].requests);
      CHECK(prefill.handed_over >= 8);  // all but those of one token, or that stop at once
      CHECK(prefill.handed_over_bytes > Bytes());
      options.enable_prefix_caching = true;
      CHECK(serve_replicas(weights, options, apart, requests, 800 / block_size).texts == expected);
    }
}

TEST_CASE("handed-over prompts that are preempted are computed again, and end with the same text", "[replicas]") {
  const ModelWeights weights = text_weights();
  EngineOptions options = replica_options(weights.shape);
  std::vector<Request> requests = requests_for(weights.shape);
  for (Request& request : requests) request.max_tokens += 20, request.arrival = {};
  const Texts expected = texts_alone(weights, options, requests);
  const ServedReplicas served =
      serve_replicas(weights, options, {.prefill_replicas = 1, .decode_replicas = 1}, requests, 40);
  CHECK(served.texts == expected);
  CHECK(served.run.num_preemptions > 0);
}

TEST_CASE("replicas that change their roles lose and change nothing", "[replicas]") {
  const ModelWeights weights = text_weights();
  const EngineOptions options = replica_options(weights.shape);
  std::vector<Request> requests;
  for (int copy = 0; copy < 4; ++copy)
    for (Request request : requests_for(weights.shape)) {
      request.id += 100 * copy;
      request.arrival = Seconds(0.01 * copy);
      requests.push_back(request);
    }
  const Texts expected = texts_alone(weights, options, requests);
  const RoleSwitching eager{
      .prefill_above = 0.5, .prefill_below = 0.4, .decode_above = 0.1, .decode_below = 0.09, .hold = {}};
  const ReplicaChoices choices{.prefill_replicas = 2, .decode_replicas = 2, .role_switching = eager};
  const ServedReplicas served = serve_replicas(weights, options, choices, requests);
  CHECK(served.texts == expected);
  int switches = 0;
  for (const ServedReplica& replica : served.run.replicas) switches += replica.role_switches;
  CHECK(switches > 0);
}

TEST_CASE("latents are handed over like K and V", "[replicas]") {
  for (const std::string& variant : {kLatentVariants.front(), kLatentVariants.back(), kCrossLayerVariants.front()}) {
    const ModelShape shape = load_weights(kFamilyFolder / variant).shape;
    const ModelWeights weights = random_weights(shape, 5);
    EngineOptions options = replica_options(shape);
    const std::vector<Request> requests = requests_for(shape);
    const Texts expected = texts_alone(weights, options, requests);
    INFO(variant);
    CHECK(serve_replicas(weights, options, {.prefill_replicas = 1, .decode_replicas = 2}, requests).texts == expected);
  }
}

TEST_CASE("a request that can never be served ends the run, and so does a replica that fails", "[replicas]") {
  const ModelWeights weights = text_weights();
  const EngineOptions options = replica_options(weights.shape);
  std::vector<Request> requests = requests_for(weights.shape);
  requests[7].max_tokens = 100000;
  CHECK_THROWS_WITH(serve_replicas(weights, options, {.data_parallel_size = 2}, requests),
                    ContainsSubstring("request 8: "));
  requests = requests_for(weights.shape);
  requests[6].prompt_token_ids[0] = weights.shape.vocab_size;  // found out by the executor
  CHECK_THROWS_AS(serve_replicas(weights, options, {.data_parallel_size = 2}, requests), InputError);
  CHECK_THROWS_AS(serve_replicas(weights, options, {.prefill_replicas = 1, .decode_replicas = 1}, requests),
                  InputError);
}

TEST_CASE("what replicas of one machine do not do is refused", "[replicas]") {
  const ModelWeights weights = text_weights();
  EngineOptions options = replica_options(weights.shape);
  options.kv_retention = {.policy = RetentionPolicy::window, .window_tokens = 8};
  CHECK(problems({.data_parallel_size = 2}, options).empty());
  const ReplicaChoices apart{.prefill_replicas = 1, .decode_replicas = 1};
  CHECK_THAT(problems(apart, options).front(), ContainsSubstring("whole KV cache"));
  CHECK_THAT(problems({.prefill_replicas = 1}, options).front(), ContainsSubstring("need each other"));
  GeneratorOptions asked;
  asked.device.kind = DeviceKind::host_gpu;
  CHECK_THROWS_WITH(open_replicas(weights, options, asked, 2), ContainsSubstring("use --device cpu"));
}

TEST_CASE("the GPU's blocks are handed over as the CPU's are", "[replicas][gpu]") {
  const ModelWeights weights = random_weights(small_model(2), 42);
  EngineOptions options = replica_options(weights.shape, Dtype::f16);
  const auto open = [&] {
    return GpuExecutor(
        host_gpu(), weights, {.num_blocks = 40, .block_size = 4, .dtype = Dtype::f16},
        {.activation_dtype = Dtype::f32,
         .limits = {.max_num_batched_tokens = options.max_num_batched_tokens, .max_num_seqs = options.max_num_seqs}});
  };
  GpuExecutor first = open(), second = open();
  const auto decode = [&](ModelExecutor& executor, Request request) {
    Scheduler scheduler(options, {.num_blocks = 40, .max_position_embeddings = weights.shape.max_position_embeddings});
    LogitsSource tokens(executor);
    WallClock clock;
    std::vector<TokenId> text;
    std::vector<std::byte> kv(10 * executor.bytes_per_block());
    const auto see = [&](const ServedStep& step) {
      if (step.plan.batch.sequences[0].phase == Phase::prefill)
        executor.read_blocks(step.plan.batch.block_tables[0], std::span(kv).first(6 * executor.bytes_per_block()));
    };
    ServingLoop loop({planner_of(weights.shape, options), scheduler, executor, tokens, clock},
                     {.on_finished = [&](const Sequence& sequence) { text = sequence.tokens; }, .on_step = see});
    REQUIRE_FALSE(loop.submit(std::move(request)));
    loop.run();
    return std::pair(text, kv);
  };
  Request request;
  request.prompt_token_ids = random_tokens(22, weights.shape.vocab_size);
  request.max_tokens = 9;
  const auto [whole, kv] = decode(first, request);
  Request rest = request;
  rest.prompt_token_ids.push_back(whole[22]);
  rest.num_received_tokens = 22;
  rest.received_kv = std::make_shared<const std::vector<std::byte>>(kv);
  rest.max_tokens = 8;
  CHECK(decode(second, rest).first == whole);
}

}  // namespace dculab::engine
