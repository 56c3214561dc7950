// A simulated server with two sets of KV heads.
#include <algorithm>

#include "sim/serving/simulated_server.hpp"
#include "sim/serving/step_confidence.hpp"
#include "sim/serving/step_sample.hpp"
#include "tests/sim/small_servers.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;
using namespace dculab::sim;
using namespace dculab::sim::test;

namespace {

constexpr int kFew = 8;  // of 32
constexpr GroupsByLoad kRule{.waiting_above = 4, .waiting_below = 1, .usage_above = 0.9, .usage_below = 0.6};

SimulatedServer with_two_sets(const GroupsByLoad& groups, const Deployment& deployment = {}) {
  SimulatedServer server = small_server(deployment);
  server.options.groups_by_load = groups;
  server.few_heads = FewHeads{with_kv_heads(server.model, kFew)};
  return server;
}

// More than the server's 16 sequences at a time in the first half, few in the second.
RequestWorkload loads(int requests = 120) {
  RequestWorkload workload = small_bursts(requests, 12);
  workload.prefix_tokens = 0;
  workload.burstiness = 0.05;
  return workload;
}

void check_same(const ServingRun& one, const ServingRun& other) {
  CHECK(one.metrics.requests() == other.metrics.requests());
  CHECK(one.metrics.output_tokens() == other.metrics.output_tokens());
  for (const auto figure :
       {&ServingMetrics::ttft, &ServingMetrics::tpot, &ServingMetrics::itl, &ServingMetrics::latency}) {
    CHECK((one.metrics.*figure)().mean() == (other.metrics.*figure)().mean());
    CHECK((one.metrics.*figure)().largest() == (other.metrics.*figure)().largest());
  }
  CHECK(one.num_steps == other.num_steps);
  CHECK(one.num_preemptions == other.num_preemptions);
  CHECK(one.busy == other.busy);
  CHECK(one.time_by_bound == other.time_by_bound);
  CHECK(one.timeline.most_used_blocks() == other.timeline.most_used_blocks());
}

}  // namespace

TEST_CASE("thresholds that are never reached simulate one set, to the bit", "[groups_by_load]") {
  const GroupsByLoad never{.waiting_above = 1 << 20, .usage_above = 1};
  for (const Deployment& deployment : {Deployment{}, Deployment{.data_parallel_size = 2}})
    check_same(simulate(with_two_sets(never, deployment), loads()), simulate(small_server(deployment), loads()));
}

TEST_CASE("few heads for all simulate the model with few heads and as large blocks, to the bit", "[groups_by_load]") {
  SimulatedServer few = small_server();
  few.model = with_kv_heads(few.model, kFew);
  few.options.block_size *= 32 / kFew;
  for (const int blocks : {400, 12}) {
    SimulatedServer both = with_two_sets({.heads = HeadAssignment::few});
    both.num_blocks = few.num_blocks = blocks;
    check_same(simulate(both, loads()), simulate(few, loads()));
  }
}

TEST_CASE("a step of both sets reads the model twice", "[groups_by_load]") {
  const SimulatedServer server = with_two_sets(kRule);
  const Seconds reading =
      weight_footprint(server.few_heads->model, server.options.weights) / server.machine.dram().bandwidth;
  Seconds previous_end;
  HeadSet previous = HeadSet::few;
  std::int64_t both = 0;
  const ServingRun run = simulate(server, loads(), {}, {.on_step = [&](const ServedStep& step, int) {
                                    const HeadSet set = step.plan.batch.head_set;
                                    CHECK(step.end - step.begin > reading);
                                    if (set == HeadSet::few && previous == HeadSet::many && step.begin == previous_end)
                                      ++both;
                                    previous = set, previous_end = step.end;
                                  }});
  CHECK(run.head_sets.requests[0] > 0);
  CHECK(run.head_sets.requests[1] > 0);
  CHECK(run.head_sets.requests[0] + run.head_sets.requests[1] == run.metrics.requests());
  CHECK(run.head_sets.tokens[0] + run.head_sets.tokens[1] == run.metrics.output_tokens());
  CHECK(run.head_sets.steps_of_both > 0);
  CHECK(run.head_sets.steps_of_both <= both);
  CHECK(run.head_sets.steps + run.head_sets.steps_of_both == run.num_steps);
  CHECK(run.head_sets.switches > 0);
}

TEST_CASE("the second set takes its K and V projections, or a whole model, out of the KV blocks", "[groups_by_load]") {
  SimulatedServer server = with_two_sets({});
  server.num_blocks.reset();
  SimulatedServer plain = small_server();
  plain.num_blocks.reset();
  const RequestWorkload one = requests_of(1, 100, 4);
  const ServingRun alone = simulate(plain, one), with = simulate(server, one);
  const double projections = 32.0 * 2 * 4096 * (kFew * 128) * 2;
  CHECK_THAT(with.few_heads_weights.value(), WithinRel(projections, 1e-12));
  const double block = 16 * 2.0 * 32 * 4096 * 2;
  CHECK(std::abs(static_cast<double>(alone.num_blocks - with.num_blocks) - projections / block) <= 1);
  server.few_heads->weights = FewWeights::all;
  CHECK(simulate(server, one).few_heads_weights == weight_footprint(server.few_heads->model, server.options.weights));
}

TEST_CASE("where blocks are short, few heads for those who wait serve more", "[groups_by_load]") {
  const auto with_blocks = [](SimulatedServer server) {
    server.num_blocks = 24;
    return server;
  };
  const ServingRun many = simulate(with_blocks(small_server()), loads());
  const ServingRun by_load = simulate(with_blocks(with_two_sets(kRule)), loads());
  const ServingRun few = simulate(with_blocks(with_two_sets({.heads = HeadAssignment::few})), loads());
  CHECK(few.metrics.duration() < many.metrics.duration());
  CHECK(by_load.metrics.duration() < many.metrics.duration());
  CHECK(by_load.num_preemptions < many.num_preemptions);
}

TEST_CASE("steps of both sets are predicted again as what they are", "[groups_by_load]") {
  const SimulatedServer server = with_two_sets(kRule);
  StepSample sample(4096);
  Seconds total;
  static_cast<void>(simulate(server, loads(), {}, {.on_step = [&](const ServedStep& step, int) {
                               sample.add(step);
                               total += step.end - step.begin;
                             }}));
  const auto is_few = [](const Batch& batch) { return batch.head_set == HeadSet::few; };
  REQUIRE(std::ranges::any_of(sample.batches(), is_few));
  Seconds again;
  for (const Seconds time : phase_times(server, sample.batches())) again += time;
  CHECK_THAT(again.value(), WithinRel(total.value(), 1e-9));
  CHECK(step_confidence(server, sample.batches()).high >= 1);
}

TEST_CASE("what two sets of heads cannot do is refused", "[groups_by_load]") {
  const auto refused = [](const SimulatedServer& server, const std::string& why) {
    const auto found = problems(server);
    REQUIRE(found.size() == 1);
    CHECK_THAT(found.front(), ContainsSubstring("groups_by_load") && ContainsSubstring(why));
  };
  SimulatedServer server = with_two_sets({});
  CHECK(problems(server).empty());
  server.few_heads.reset();
  refused(server, "needs a second set");
  server = with_two_sets({});
  server.few_heads->model = with_kv_heads(server.model, 32);
  refused(server, "not fewer");
  server.few_heads->model = llama_3_8b();
  refused(server, "more than its KV heads");
  server = with_two_sets({});
  server.options.block_size = 128;
  refused(server, "lower kv_cache.block_size");
  server = with_two_sets({}, {.prefill_replicas = 1, .decode_replicas = 1, .kv_transfer_bandwidth = 10 * kGBs});
  refused(server, "neither handed over");
  server = with_two_sets({});
  server.machine = linked_server().machine;
  server.few_heads->model = with_kv_heads(server.model, 1);
  server.deployment.tensor_parallel_size = 8;  // 4 heads on each device, and 1
  server.options.block_size = 128;
  refused(server, "would hold 512");
}
