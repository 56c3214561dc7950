// Many requests into little memory: whoever comes is served once, and nothing is left behind.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/serving_loop.hpp"
#include "core/serving_timeline.hpp"
#include "core/workload.hpp"
#include "model/plan_step.hpp"
#include "tests/core/requests.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sanitized.hpp"

using namespace dculab;

namespace {

class SwapCountingExecutor final : public Executor {
 public:
  void copy_blocks(std::span<const BlockCopy>) override {}
  void swap_blocks(std::span<const BlockCopy> out, std::span<const BlockCopy> in) override {
    blocks_out += static_cast<std::int64_t>(out.size());
    blocks_in += static_cast<std::int64_t>(in.size());
  }
  StepResult run(const StepPlan& plan) override {
    return {.duration = Seconds(1e-3 + 1e-5 * static_cast<double>(plan.batch.num_tokens())), .op_durations = {}};
  }
  std::int64_t blocks_out = 0, blocks_in = 0;
};

class ZeroTokens final : public TokenSource {
 public:
  TokenId next_token(const Sequence&, int) override { return 0; }
};

// 40 prompt and 24 output tokens on average, 4 blocks of 16 a request: 200 blocks hold about 50 of them.
RequestWorkload bursts(int requests) {
  RequestWorkload workload{.requests = requests, .arrival = ArrivalKind::gamma};
  workload.prompt = {LengthKind::uniform, 1, 0, 8, 72};
  workload.output = {LengthKind::uniform, 1, 0, 1, 47};
  workload.requests_per_second = 1500;
  workload.burstiness = 0.2;
  workload.prefix_tokens = 16;
  workload.prefixes = 50;
  return workload;
}

struct Soak {
  std::vector<int> finished;  // [requests] times
  ServingReport report;
  ServingTimeline timeline;
  int num_free = 0, num_host_free = 0, num_preemptions = 0;
  SwapCounts swaps;
  std::vector<std::int64_t> first_step, last_step;  // [requests]
  std::string audit;
};

Soak soak(const EngineOptions& options, int num_blocks, const RequestWorkload& workload, int num_host_blocks = 0) {
  ModelShape model{.hidden_size = 64,
                   .vocab_size = 100,
                   .max_position_embeddings = 512,
                   .kinds = {{.attention = Gqa{.heads = {4, 2, 16}}, .mlp = {128}}},
                   .layers = {0, 0}};
  Scheduler scheduler(options,
                      {.num_blocks = num_blocks, .max_position_embeddings = 512, .num_host_blocks = num_host_blocks},
                      BatchContents::lengths_only);
  SwapCountingExecutor executor;
  ZeroTokens tokens;
  VirtualClock clock;
  Soak result;
  std::int64_t steps = 0;
  const auto count = static_cast<std::size_t>(workload.requests);
  result.finished.resize(count);
  result.first_step.resize(count);
  result.last_step.resize(count);
  ServingLoop loop({planner_of(model, options), scheduler, executor, tokens, clock, RequestRecords::drop},
                   {.on_finished =
                        [&](const Sequence& each) {
                          CHECK(each.num_generated() == each.request.max_tokens);
                          ++result.finished[static_cast<std::size_t>(each.request.id)];
                          result.last_step[static_cast<std::size_t>(each.request.id)] = steps;
                        },
                    .on_step =
                        [&](const ServedStep& step) {
                          result.timeline.add(step);
                          ++steps;
                          for (const SequenceSlice& slice : step.plan.batch.sequences) {
                            std::int64_t& first = result.first_step[static_cast<std::size_t>(slice.id)];
                            if (first == 0) first = steps;
                          }
                        }});
  RequestSource source(workload);
  loop.run(source);
  result.report = loop.report();
  result.num_free = scheduler.pool().num_free();
  result.num_preemptions = scheduler.num_preemptions();
  result.num_host_free = scheduler.host_pool().num_free();
  result.swaps = scheduler.swaps();
  CHECK(result.swaps.blocks_out == executor.blocks_out);
  CHECK(result.swaps.blocks_in == executor.blocks_in);
  result.audit = scheduler.pool().audit() + scheduler.host_pool().audit();
  return result;
}

}  // namespace

TEST_CASE("100,000 bursty requests into memory for 50 finish once each and leave the pool empty", "[soak]") {
  const RequestWorkload workload = bursts(kSanitized ? 5000 : 100000);
  for (const bool prefix_caching : {false, true}) {
    EngineOptions options = options_with(16, 128, 1024);
    options.enable_prefix_caching = prefix_caching;
    const Soak result = soak(options, 200, workload);
    CHECK(std::ranges::all_of(result.finished, [](int times) { return times == 1; }));
    CHECK(result.num_free == 200);
    CHECK(result.audit.empty());
    CHECK(result.num_preemptions > 0);
    CHECK(result.report.requests.empty());
    CHECK(result.timeline.intervals().size() <= 512);
    CHECK(result.timeline.most_used_blocks() <= 200);
    CHECK(result.timeline.most_used_blocks() > 190);
    CHECK((result.report.num_cached_tokens > 0) == prefix_caching);
  }
}

TEST_CASE("the same with preemption by swap leaves both pools empty", "[soak]") {
  const RequestWorkload workload = bursts(kSanitized ? 5000 : 100000);
  for (const bool prefix_caching : {false, true})
    for (const int num_host_blocks : {8, 1000}) {
      INFO("prefix caching " << prefix_caching << ", host blocks " << num_host_blocks);
      EngineOptions options = options_with(16, 128, 1024);
      options.enable_prefix_caching = prefix_caching;
      options.preemption_mode = PreemptionMode::swap;
      const Soak result = soak(options, 200, workload, num_host_blocks);
      CHECK(std::ranges::all_of(result.finished, [](int times) { return times == 1; }));
      CHECK(result.num_free == 200);
      CHECK(result.num_host_free == num_host_blocks);
      CHECK(result.audit.empty());
      CHECK(result.swaps.preemptions > 0);
      CHECK((result.swaps.preemptions < result.num_preemptions) == (num_host_blocks == 8));
      CHECK((result.swaps.blocks_in < result.swaps.blocks_out) == prefix_caching);
    }
}

TEST_CASE("a static batch admits no request before all its members have ended", "[soak]") {
  constexpr std::size_t kBatch = 8;
  EngineOptions options = options_with(16, kBatch, 64);  // prompts in chunks: a batch needs several steps to assemble
  RequestWorkload workload = bursts(40 * kBatch);
  workload.arrival = ArrivalKind::all_at_once;
  const auto overlaps = [](const Soak& served) {
    int late = 0;
    for (std::size_t id = kBatch; id < served.first_step.size(); ++id)
      for (std::size_t before = 0; before < id / kBatch * kBatch; ++before)
        late += served.first_step[id] <= served.last_step[before] ? 1 : 0;
    return late;
  };
  CHECK(overlaps(soak(options, 200, workload)) > 0);
  options.batching = Batching::per_batch;
  CHECK(overlaps(soak(options, 200, workload)) == 0);
}

TEST_CASE("a static batch on too few blocks lets its preempted members finish", "[soak]") {
  EngineOptions options = options_with(16, 8, 64);
  options.batching = Batching::per_batch;
  const Soak served = soak(options, 14, bursts(1000));
  CHECK(std::ranges::all_of(served.finished, [](int times) { return times == 1; }));
  CHECK(served.num_preemptions > 0);
  CHECK(served.num_free == 14);
}

TEST_CASE("a timeline adds up to the run, however often its intervals were merged", "[soak]") {
  const Soak result = soak(options_with(16, 32, 512), 100, bursts(3000));
  Seconds busy;
  int preemptions = 0;
  for (const TimelineInterval& interval : result.timeline.intervals()) {
    busy += interval.busy;
    preemptions += interval.preemptions;
    CHECK(interval.begin <= interval.end);
    CHECK(interval.running <= 32);
    CHECK(interval.used_blocks <= 100);
    CHECK((interval.unused_slots >= 0 && interval.unused_slots < 1));
  }
  CHECK_THAT(busy.value(), WithinRel(result.report.executor_time.value(), 1e-9));
  CHECK(preemptions == result.num_preemptions);
}
