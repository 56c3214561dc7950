// Two sets of KV heads over one memory of KV blocks: every text is what the model of its set alone makes of its prompt.
#include <map>
#include <random>

#include "core/error.hpp"
#include "engine/checkpoint/random_weights.hpp"
#include "engine/executors/cpu_executor.hpp"
#include "engine/generate/engine_core.hpp"
#include "engine/generate/serve_replicas.hpp"
#include "engine/generate/wall_clock.hpp"
#include "engine/measure/step_sample.hpp"
#include "engine/regroup/mean_pool.hpp"
#include "tests/engine/support/small_gpu_model.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

constexpr int kMany = 8, kFew = 2;

struct Text {
  std::vector<TokenId> tokens;
  HeadSet set = HeadSet::many;
};
using GroupTexts = std::map<SequenceId, Text>;

ModelWeights weights_of_many() { return random_weights(small_model(kMany), 42); }

// The first eight find others waiting; the last four do not. All at once, so that nothing depends on time.
EngineOptions group_options(const ModelShape& shape, Dtype dtype = Dtype::f32, int block_size = 4) {
  EngineOptions options;
  options.block_size = block_size;
  options.kv_cache_dtype = dtype;
  options.activation_dtype = Dtype::f32;
  options.weights = shape.layer_format();
  options.max_num_seqs = 4;
  options.max_num_batched_tokens = 64;
  options.groups_by_load = GroupsByLoad{.waiting_above = 6, .waiting_below = 4, .usage_above = 1, .usage_below = 0.999};
  return options;
}

std::vector<Request> some_requests() {
  std::vector<Request> requests;
  for (int index = 0; index < 12; ++index) {
    Request request;
    request.id = index;
    request.prompt_token_ids = tokens_from(index, 3 + 5 * index);
    request.max_tokens = 2 + (7 * index) % 20;
    if (index % 2 == 1) request.sampling = {.temperature = 1.0, .seed = static_cast<std::uint64_t>(index)};
    requests.push_back(request);
  }
  return requests;
}

// With the weights of one set, a request at a time.
std::vector<TokenId> text_alone(const ModelWeights& weights, EngineOptions options, int block_size,
                                const Request& request) {
  const int num_blocks = 1600 / block_size;
  options.groups_by_load.reset();
  options.block_size = block_size;
  CpuExecutor executor(weights, {.num_blocks = num_blocks, .block_size = block_size, .dtype = options.kv_cache_dtype},
                       1);
  Scheduler scheduler(options,
                      {.num_blocks = num_blocks, .max_position_embeddings = weights.shape.max_position_embeddings});
  LogitsSource tokens(executor);
  WallClock clock;
  std::vector<TokenId> text;
  ServingLoop loop({.plan = planner_of(weights.shape, options),
                    .scheduler = scheduler,
                    .executor = executor,
                    .tokens = tokens,
                    .clock = clock},
                   {.on_finished = [&](const Sequence& sequence) { text = sequence.tokens; }});
  REQUIRE_FALSE(loop.submit(request));
  loop.run();
  return text;
}

void check_texts(const GroupTexts& texts, const ModelWeights& many, const ModelWeights& few,
                 const EngineOptions& options, const std::vector<Request>& requests) {
  REQUIRE(texts.size() == requests.size());
  for (const Request& request : requests) {
    const auto& [tokens, set] = texts.at(request.id);
    const bool is_few = set == HeadSet::few;
    INFO("request " << request.id << (is_few ? ", few heads" : ", many heads"));
    const int block_size = options.block_size * (is_few ? kMany / kFew : 1);
    CHECK(tokens == text_alone(is_few ? few : many, options, block_size, request));
  }
}

struct ServedGroups {
  GroupTexts texts;
  HeadSetCounts counts;
  int preemptions = 0;
};

ServedGroups serve_groups(const ModelWeights& many, const ModelWeights& few, const EngineOptions& options,
                          const std::vector<Request>& requests, int num_blocks) {
  OpenModel model = open_model(many, options, DraftWeights(), open_device({}), num_blocks, 1);
  add_few_heads(model, few, options);
  WallClock clock;
  ServedGroups served;
  EngineCore core(model, options, clock, RequestRecords::drop,
                  {.on_finished =
                       [&](const Sequence& sequence) {
                         served.texts[sequence.request.id] = {sequence.tokens, sequence.head_set};
                       },
                   .on_step = [](const ServedStep& step) { CHECK(step.scheduler.pool().audit().empty()); }});
  for (const Request& request : requests) REQUIRE_FALSE(core.loop().submit(request));
  core.loop().run();
  CHECK(core.scheduler().pool().num_free() == num_blocks);
  served.counts = core.scheduler().head_sets();
  served.preemptions = core.scheduler().num_preemptions();
  return served;
}

}  // namespace

TEST_CASE("requests of both sets get the texts of their set's model, in every format", "[groups_by_load]") {
  const ModelWeights many = weights_of_many(), few = regrouped(many, kFew);
  const std::vector<Request> requests = some_requests();
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::fp8_e4m3, Dtype::int8})
    for (const int block_size : {1, 16}) {
      INFO(name(dtype) << ", block size " << block_size);
      const EngineOptions options = group_options(many.shape, dtype, block_size);
      const ServedGroups served = serve_groups(many, few, options, requests, 1600 / block_size);
      check_texts(served.texts, many, few, options, requests);
      CHECK(served.counts.requests[0] >= 4);
      CHECK(served.counts.requests[1] >= 4);
      CHECK(served.counts.steps_of_both > 0);
    }
}

TEST_CASE("with too few blocks requests of both sets are preempted, and end with the same texts", "[groups_by_load]") {
  const ModelWeights many = weights_of_many(), few = regrouped(many, kFew);
  std::vector<Request> requests = some_requests();
  for (Request& request : requests) request.max_tokens += 40;
  for (const PreemptionMode mode : {PreemptionMode::recompute, PreemptionMode::swap}) {
    EngineOptions options = group_options(many.shape);
    options.preemption_mode = mode;
    options.swap_space = 8 * kMiB;
    const ServedGroups served = serve_groups(many, few, options, requests, 33);
    check_texts(served.texts, many, few, options, requests);
    CHECK(served.preemptions > 0);
  }
}

TEST_CASE("samples of a prompt have its heads", "[groups_by_load]") {
  const ModelWeights many = weights_of_many(), few = regrouped(many, kFew);
  EngineOptions options = group_options(many.shape);
  Request request = some_requests()[5];
  request.n = 3;
  for (const HeadAssignment heads : {HeadAssignment::many, HeadAssignment::few}) {
    options.groups_by_load->heads = heads;
    const ServedGroups served = serve_groups(many, few, options, {request}, 200);
    REQUIRE(served.texts.size() == 3);
    for (const auto& [id, text] : served.texts) {
      Request sample = request;
      sample.n = 1;
      sample.sampling.seed += static_cast<std::uint64_t>(id - request.id);
      const bool is_few = heads == HeadAssignment::few;
      CHECK((text.set == HeadSet::few) == is_few);
      CHECK(text.tokens ==
            text_alone(is_few ? few : many, options, options.block_size * (is_few ? kMany / kFew : 1), sample));
    }
  }
}

TEST_CASE("replicas serve with two sets each", "[groups_by_load][replicas]") {
  const ModelWeights many = weights_of_many(), few = regrouped(many, kFew);
  const EngineOptions options = group_options(many.shape);
  const std::vector<Request> requests = some_requests();
  const auto replicas = open_replicas(many, options, DraftWeights(), 200, 1, 2);
  replicas->run([&](int, OpenModel& model) { add_few_heads(model, few, options); });
  GroupTexts texts;
  std::size_t next = 0;
  const ServedWorkload run =
      serve_on_replicas(*replicas, options, {.data_parallel_size = 2},
                        [&] { return next < requests.size() ? std::optional(requests[next++]) : std::nullopt; },
                        {.on_finished = [&](const Sequence& each) {
                          texts[each.request.id] = {each.tokens, each.head_set};
                        }});
  check_texts(texts, many, few, options, requests);
  CHECK(run.head_sets.requests[0] + run.head_sets.requests[1] == 12);
}

TEST_CASE("what goes with no second set of heads is refused", "[groups_by_load]") {
  const ModelWeights many = weights_of_many();
  const EngineOptions options = group_options(many.shape);
  const ModelWeights few = load_few_heads(many, kFew, {}, options);
  CHECK(few.in(WeightSlot::qkv_proj, 0).weights[0].data == many.in(WeightSlot::qkv_proj, 0).weights[0].data);
  CHECK(few.in(WeightSlot::qkv_proj, 0).weights[1].data != many.in(WeightSlot::qkv_proj, 0).weights[1].data);
  CHECK_THROWS_WITH(load_few_heads(many, kMany, {}, options), ContainsSubstring("not fewer"));
  CHECK_THROWS_WITH(load_few_heads(many, 3, {}, options), ContainsSubstring("cannot be pooled"));
  OpenModel model = open_model(many, options, DraftWeights(), open_device({}), 40, 1);
  CHECK_THROWS_WITH(model.executor->with_few_heads(few, 8), ContainsSubstring("not those of the model"));
  OpenModel on_gpu = open_model(many, group_options(many.shape, Dtype::f16), DraftWeights(),
                                open_device({.kind = DeviceKind::host_gpu}), 40, 1);
  CHECK_THROWS_WITH(add_few_heads(on_gpu, few, options), ContainsSubstring("--device cpu"));
  CHECK_THAT(problems({.prefill_replicas = 1, .decode_replicas = 1}, options).front(),
             ContainsSubstring("groups_by_load"));
}

TEST_CASE("steps of a run are kept with the model that they are of", "[groups_by_load]") {
  const ModelWeights many = weights_of_many(), few = regrouped(many, kFew);
  const EngineOptions options = group_options(many.shape);
  OpenModel model = open_model(many, options, DraftWeights(), open_device({}), 400, 1);
  add_few_heads(model, few, options);
  WallClock clock;
  StepSample sample(many.shape, options, 1000);
  sample.set_few_heads(few.shape);
  EngineCore core(model, options, clock, RequestRecords::drop,
                  {.on_step = [&](const ServedStep& step) { sample.add(step); }});
  for (const Request& request : some_requests()) REQUIRE_FALSE(core.loop().submit(request));
  core.loop().run();
  int of_few = 0;
  for (const TraceStep& step : sample.steps()) {
    const StepPlan plan = plan_step(step.model, step.options, step.batch);
    REQUIRE(plan.ops.size() == step.op_durations.size());
    for (std::size_t op = 0; op < plan.ops.size(); ++op) CHECK(plan.ops[op].name == step.op_names[op]);
    of_few += step.model.heads().num_key_value_heads == kFew && step.options.block_size == 16 ? 1 : 0;
  }
  CHECK(of_few > 0);
  CHECK(of_few < std::ssize(sample.steps()));
}

}  // namespace dculab::engine
