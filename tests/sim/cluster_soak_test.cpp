// Clusters over many requests: one replica is the server alone, step by step; bursts into little memory end once each.
#include <algorithm>
#include <utility>
#include <vector>

#include "model/plan_step.hpp"
#include "sim/serving/cluster.hpp"
#include "sim/serving/simulated_server.hpp"
#include "tests/sim/small_servers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/seen_step.hpp"

using namespace dculab;
using namespace dculab::sim;
using namespace dculab::sim::test;
using dculab::test::seen;
using dculab::test::SeenStep;

namespace {

EngineOptions small_steps() {
  EngineOptions options;
  options.max_num_seqs = 64;
  options.max_num_batched_tokens = 512;
  return options;
}

Machine linked() {
  Machine machine = mi50_like();
  machine.peer_link = 30 * kGBs;
  machine.host_link = 32 * kGBs;
  return machine;
}

class AlwaysZero final : public TokenSource {
 public:
  TokenId next_token(const Sequence&, int) override { return 0; }
};

struct TimedStep {
  Seconds begin, end;
  SeenStep seen;  // batch, blocks, queues, preemptions
  bool operator==(const TimedStep&) const = default;
};

TimedStep timed(const ServedStep& step) { return {step.begin, step.end, seen(step)}; }

std::vector<TimedStep> steps_of_one_loop(const SimulatedServer& server, const RequestWorkload& workload) {
  std::vector<TimedStep> steps;
  Scheduler scheduler(server.options, {*server.num_blocks, server.model.max_position_embeddings},
                      BatchContents::lengths_only);
  SimulatedExecutor executor(server.machine, server.model, server.options);
  AlwaysZero tokens;
  VirtualClock clock;
  ServingLoop loop({planner_of(server.model, server.options), scheduler, executor, tokens, clock, RequestRecords::drop},
                   {.on_step = [&](const ServedStep& step) { steps.push_back(timed(step)); }});
  RequestSource source(workload);
  loop.run(source);
  return steps;
}

}  // namespace

TEST_CASE("a single replica takes the very steps of a serving loop alone", "[cluster]") {
  for (const double rate : {2.0, 50.0}) {
    SimulatedServer one{linked(), llama_2_7b(), small_steps(), 60};
    one.options.enable_prefix_caching = rate > 10;
    std::vector<TimedStep> steps;
    const auto see = [&](const ServedStep& step, int engine) {
      CHECK(engine == 0);
      steps.push_back(timed(step));
    };
    const ServingRun run = simulate(one, small_bursts(300, rate), {}, {.on_step = see});
    CHECK(steps == steps_of_one_loop(one, small_bursts(300, rate)));
    CHECK((run.num_preemptions > 0) == (rate > 10));
  }
}

TEST_CASE("clients with max_concurrency have no more requests open, on every kind of cluster", "[cluster]") {
  constexpr int kOpen = 6;
  RequestWorkload workload = small_bursts(240, 1000);
  workload.max_concurrency = kOpen;
  SimulatedServer one{linked(), llama_2_7b(), small_steps(), 200};
  std::vector<TimedStep> steps;
  (void)simulate(one, workload, {}, {.on_step = [&](const ServedStep& step, int) { steps.push_back(timed(step)); }});
  CHECK(steps == steps_of_one_loop(one, workload));

  const ModelShape model = llama_2_7b();
  const EngineOptions options = small_steps();
  const Machine machine = linked();
  for (const Deployment& deployment :
       {Deployment{}, Deployment{.data_parallel_size = 3}, Deployment{.pipeline_parallel_size = 2},
        Deployment{.prefill_replicas = 1, .decode_replicas = 2}}) {
    const EngineParts parts{machine, model, options, deployment, 200, 20};
    std::vector<std::pair<Seconds, int>> changes;  // of the number that is open
    Cluster cluster(parts, {.on_finished = [&](const Sequence& each) {
                      const Seconds sent = each.request.arrival - each.request.reading;
                      changes.emplace_back(sent, 1);
                      changes.emplace_back(each.token_times.back(), -1);
                    }});
    RequestSource source(workload);
    cluster.run(source);
    std::ranges::sort(changes);  // who ends comes before who begins at that time
    int open = 0, most = 0;
    for (const auto& [time, change] : changes) most = std::max(most, open += change);
    CHECK(changes.size() == 480);
    CHECK(most == kOpen);
  }
}

TEST_CASE("bursts into little memory finish once each on every kind of cluster", "[cluster][soak]") {
  constexpr int kRequests = 10000;
  const ModelShape model = llama_2_7b();
  const EngineOptions options = [] {
    EngineOptions each = small_steps();
    each.enable_prefix_caching = true;
    each.preemption_mode = PreemptionMode::swap;
    return each;
  }();
  const Machine machine = linked();
  for (const Deployment& deployment :
       {Deployment{.data_parallel_size = 4, .routing = Routing::least_tokens},
        Deployment{.pipeline_parallel_size = 2, .data_parallel_size = 2, .routing = Routing::prefix_affinity},
        Deployment{.tensor_parallel_size = 2,
        .routing = Routing::least_requests,
        .prefill_replicas = 1,
        .decode_replicas = 3}}) {
    const EngineParts parts{machine, model, options, deployment, 40, 20};
    std::vector<int> finished(static_cast<std::size_t>(kRequests));
    std::int64_t wrong_lengths = 0, unordered = 0;
    Seconds last_begin;
    Cluster cluster(parts, {.on_finished =
                                [&](const Sequence& each) {
                                  ++finished[static_cast<std::size_t>(each.request.id)];
                                  wrong_lengths += each.num_generated() != each.request.max_tokens;
                                  wrong_lengths += each.token_times.size() != each.generated().size();
                                  unordered += !std::ranges::is_sorted(each.token_times);
                                  unordered += each.ttft() <= Seconds{};
                                },
                            .on_step =
                                [&](const ServedStep& step, int) {
                                  unordered += step.begin < last_begin;
                                  last_begin = step.begin;
                                }});
    RequestSource source(small_bursts(kRequests, 100));
    cluster.run(source);
    CHECK(std::ranges::all_of(finished, [](int times) { return times == 1; }));
    CHECK(wrong_lengths == 0);
    CHECK(unordered == 0);
    int preemptions = 0;
    SwapCounts swaps;
    for (const Replica& replica : cluster.replicas())
      for (const VirtualEngine& engine : replica.engines) {
        CHECK(engine.scheduler().idle());
        CHECK(engine.scheduler().pool().num_free() == 40);
        CHECK(engine.scheduler().pool().audit().empty());
        CHECK(engine.scheduler().host_pool().num_free() == 20);
        CHECK(engine.scheduler().host_pool().audit().empty());
        CHECK(engine.load(engine.now()).requests == 0);
        CHECK(engine.load(engine.now()).tokens == 0);
        preemptions += engine.scheduler().num_preemptions();
        swaps += engine.scheduler().swaps();
      }
    CHECK(preemptions > 0);
    CHECK(swaps.preemptions > 0);
  }
}

TEST_CASE("the timeline of several replicas adds up to theirs", "[cluster]") {
  const SimulatedServer three{linked(), llama_2_7b(), small_steps(), 60, {.data_parallel_size = 3}};
  const ServingRun run = simulate(three, small_bursts(600, 30));
  Seconds busy;
  std::int64_t tokens = 0;
  int preemptions = 0;
  for (const TimelineInterval& interval : run.timeline.intervals()) {
    CHECK(interval.used_blocks <= 180 * (1 + 1e-9));
    CHECK(interval.running <= 3 * 64);
    CHECK(interval.busy <= (interval.end - interval.begin) * (1 + 1e-9));
    busy += interval.busy;
    tokens += interval.new_tokens;
    preemptions += interval.preemptions;
  }
  CHECK_THAT(3 * busy.value(), WithinRel(run.busy.value(), 1e-9));
  CHECK(preemptions == run.num_preemptions);
  CHECK(tokens >= run.metrics.prompt_tokens() + run.metrics.output_tokens() - 600);
  CHECK(run.timeline.most_used_blocks() <= 180);
}
