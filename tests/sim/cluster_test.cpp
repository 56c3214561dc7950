// Several devices under one virtual clock: tensor, pipeline and data parallel, and disaggregated.
#include <tuple>

#include "model/plan_step.hpp"
#include "model/shard.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/hardware/device_link.hpp"
#include "sim/serving/simulated_server.hpp"
#include "sim/serving/step_confidence.hpp"
#include "tests/sim/small_servers.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;
using namespace dculab::sim;
using namespace dculab::sim::test;

namespace {

Seconds price(const SimulatedServer& server, const ModelShape& model, Phase phase, int context) {
  return price_step(server.machine, plan_step(model, server.options, uniform_batch(phase, 1, context))).seconds;
}

double tokens_per_second(const ServingRun& run) {
  return static_cast<double>(run.metrics.output_tokens()) / run.metrics.duration().value();
}

}  // namespace

TEST_CASE("tensor parallel takes the shard's steps and their all-reduces, and holds its blocks", "[cluster]") {
  SimulatedServer two = linked_server({.tensor_parallel_size = 2});
  const ServingRun run = simulate(two, requests_of(1, 100, 2));
  const ModelShape part = shard(two.model, {}, 2);
  Seconds expected;
  for (const auto& [phase, context] : {std::pair{Phase::prefill, 100}, {Phase::decode, 101}}) {
    const StepPlan plan = plan_step(part, two.options, uniform_batch(phase, 1, context));
    expected += price_step(two.machine, plan).seconds;
  }
  CHECK_THAT(run.metrics.latency().mean().value(), WithinRel(expected.value(), 1e-9));
  CHECK(run.time_by_bound.at("exchange") > Seconds{});

  SimulatedServer one = linked_server();
  one.num_blocks = two.num_blocks = {};
  CHECK(simulate(two, requests_of(1, 100, 2)).num_blocks > 2 * simulate(one, requests_of(1, 100, 2)).num_blocks);
}

TEST_CASE("more devices than a server has exchange over the network, if there is one", "[cluster]") {
  SimulatedServer eight = linked_server({.tensor_parallel_size = 8});
  const ServingRun near = simulate(eight, requests_of(1, 100, 5));
  const Machine near_machine = eight.machine;
  eight.machine.peers = 3;
  REQUIRE(problems(eight).size() == 1);
  CHECK_THAT(problems(eight).front(), ContainsSubstring("has no network_link to exchange results over 8 devices"));
  eight.machine.network_link = link_among(near_machine, 8)->bandwidth;
  eight.machine.network_latency = Seconds(5e-6);
  REQUIRE(problems(eight).empty());
  const Seconds more = simulate(eight, requests_of(1, 100, 5)).busy - near.busy;
  CHECK_THAT(more.value(), WithinRel(5.0 * (65 * 14 + 7) * (5e-6 - 2e-6) * 2 / 8, 1e-6));  // two hops of a ring
}

TEST_CASE("what devices cannot share is refused in words", "[cluster]") {
  const auto first_problem = [](const Deployment& deployment) {
    SimulatedServer none = linked_server(deployment);
    none.machine.peer_link = {};
    const auto found = problems(none);
    return found.empty() ? std::string() : found.front();
  };
  CHECK_THAT(first_problem({.tensor_parallel_size = 2}), ContainsSubstring("has no peer_link to exchange results"));
  CHECK_THAT(first_problem({.pipeline_parallel_size = 2}), ContainsSubstring("no peer_link from one pipeline stage"));
  CHECK_THAT(first_problem({.prefill_replicas = 1, .decode_replicas = 1}), ContainsSubstring("kv_transfer.bandwidth"));
  CHECK_THAT(first_problem({.prefill_replicas = 1}), ContainsSubstring("need each other"));
  CHECK(first_problem({.data_parallel_size = 4}).empty());
  CHECK(problems(linked_server({.pipeline_parallel_size = 40})).front() == "32 layers do not make 40 stages");
}

TEST_CASE("data parallel: each replica is a server of its own", "[cluster]") {
  const RequestWorkload asked = poisson_requests(200, 2);
  const ServingRun one = simulate(linked_server(), asked);
  for (const Routing routing : {Routing::round_robin, Routing::random, Routing::least_requests, Routing::least_tokens,
                                Routing::prefix_affinity}) {
    const ServingRun four = simulate(linked_server({.data_parallel_size = 4, .routing = routing}), asked);
    CHECK(four.metrics.requests() == 200);
    CHECK(four.metrics.output_tokens() == one.metrics.output_tokens());
    CHECK(four.metrics.latency().mean() < one.metrics.latency().mean());
    REQUIRE(four.replicas.size() == 4);
    std::int64_t served = 0, steps = 0;
    for (const ReplicaRun& replica : four.replicas) {
      CHECK(replica.requests > 0);
      CHECK(replica.busy <= four.metrics.duration());
      served += replica.requests;
      steps += replica.num_steps;
    }
    CHECK(served == 200);
    CHECK(steps == four.num_steps);
    CHECK(four.num_blocks == 1600);
  }
}

TEST_CASE("two replicas in turn serve two requests as two servers would", "[cluster]") {
  const ServingRun alone = simulate(linked_server(), requests_of(1, 300, 20));
  const ServingRun both = simulate(linked_server({.data_parallel_size = 2}), requests_of(2, 300, 20));
  CHECK_THAT(both.metrics.latency().largest().value(), WithinRel(alone.metrics.latency().mean().value(), 1e-9));
  CHECK(both.num_steps == 2 * alone.num_steps);
}

TEST_CASE("a router that looks at load is better than chance when lengths differ", "[cluster]") {
  RequestWorkload asked = poisson_requests(400, 6);
  asked.output = {LengthKind::lognormal, 40, 1.2, 1, 400};
  const auto latency = [&](Routing routing) {
    return simulate(linked_server({.data_parallel_size = 4, .routing = routing}), asked).metrics.latency().mean();
  };
  CHECK(latency(Routing::least_requests) < latency(Routing::random));
  CHECK(latency(Routing::least_tokens) < latency(Routing::random));
}

TEST_CASE("prefix affinity finds more of the prompts in the cache than taking turns", "[cluster]") {
  RequestWorkload asked = poisson_requests(300, 4);
  asked.prefix_tokens = 128;
  asked.prefixes = 12;
  const auto cached = [&](Routing routing) {
    SimulatedServer each = linked_server({.data_parallel_size = 4, .routing = routing});
    each.options.enable_prefix_caching = true;
    each.num_blocks = 150;
    return simulate(each, asked).metrics.cached_tokens();
  };
  CHECK(cached(Routing::prefix_affinity) > cached(Routing::random));
}

TEST_CASE("a lone sequence goes through all stages and over the links between them", "[cluster]") {
  const SimulatedServer four = linked_server({.pipeline_parallel_size = 4});
  const ServingRun run = simulate(four, requests_of(1, 100, 3));
  Seconds expected;
  for (const auto& [phase, context, tokens] :
       {std::tuple{Phase::prefill, 100, 100}, {Phase::decode, 101, 1}, {Phase::decode, 102, 1}})
    expected += price(four, four.model, phase, context) +
                3 * (Bytes(tokens * 4096 * 2.0) / link_among(four.machine, 2)->bandwidth + *four.machine.peer_latency);
  CHECK_THAT(run.metrics.latency().mean().value(), WithinRel(expected.value(), 1e-9));
  CHECK_FALSE(run.time_by_bound.contains("pipeline"));
}

TEST_CASE("a pipeline with a batch for every stage approaches as many times the throughput", "[cluster]") {
  SimulatedServer each = linked_server();
  each.options.max_num_seqs = 4;
  const double one = tokens_per_second(simulate(each, requests_of(64, 16, 200)));
  for (const int stages : {2, 4}) {
    each.deployment.pipeline_parallel_size = stages;
    const ServingRun run = simulate(each, requests_of(64, 16, 200));
    CHECK(tokens_per_second(run) > 0.8 * stages * one);
    CHECK(tokens_per_second(run) < 1.05 * stages * one);
    CHECK(run.replicas.front().busy <= run.metrics.duration());
  }
}

TEST_CASE("stages hold as many layers each, and their blocks are divided among as many engines", "[cluster]") {
  const ReplicaDevices three{.pipeline_parallel_size = 3};
  const ModelShape model = llama_2_7b();
  CHECK(layers_of_stage(three, model, 0) == 11);
  CHECK(layers_of_stage(three, model, 1) == 11);
  CHECK(layers_of_stage(three, model, 2) == 10);
  SimulatedServer each = linked_server({.pipeline_parallel_size = 4});
  each.num_blocks = {};
  SimulatedServer one = linked_server();
  one.num_blocks = {};
  // Four times the memory, less of it for weights: more than four times the blocks in all.
  CHECK(simulate(each, requests_of(1, 100, 2)).num_blocks > 4 * simulate(one, requests_of(1, 100, 2)).num_blocks);
}

namespace {

// Pools of one replica each, on servers with a network between.
SimulatedServer two_pools() {
  SimulatedServer server = linked_server({.prefill_replicas = 1, .decode_replicas = 1});
  server.machine.network_link = 10 * kGBs;
  server.machine.network_latency = Seconds(1e-5);
  return server;
}

}  // namespace

TEST_CASE("decode replicas may be another kind of machine", "[cluster]") {
  const RequestWorkload requests = requests_of(8, 200, 40);
  SimulatedServer alike = two_pools();
  alike.deployment.kv_transfer_bandwidth = 10 * kGBs;
  alike.deployment.kv_transfer_latency = Seconds(1e-5);
  const ServingRun one_kind = simulate(alike, requests);

  SimulatedServer same = two_pools();
  same.decode_machine = same.machine;  // over the network, not within a server
  const ServingRun two_kinds = simulate(same, requests);
  CHECK(two_kinds.metrics.latency().mean() == one_kind.metrics.latency().mean());
  CHECK(two_kinds.metrics.tpot().quantile(0.5) == one_kind.metrics.tpot().quantile(0.5));

  SimulatedServer faster = same;
  faster.decode_machine->memory.back().bandwidth = 2 * faster.machine.memory.back().bandwidth;
  const ServingRun fast = simulate(faster, requests);
  CHECK(fast.metrics.ttft().mean() == two_kinds.metrics.ttft().mean());  // of the prefill replica
  CHECK(fast.metrics.tpot().quantile(0.5) < two_kinds.metrics.tpot().quantile(0.5));
}

TEST_CASE("blocks of decode replicas are those of their machine's memory", "[cluster]") {
  SimulatedServer server = two_pools();
  server.num_blocks = {};
  const std::int64_t alike = simulate(server, requests_of(1, 100, 2)).num_blocks;
  server.decode_machine = server.machine;
  server.decode_machine->memory.back().size = server.machine.memory.back().size * 2;
  CHECK(simulate(server, requests_of(1, 100, 2)).num_blocks > alike);
}

TEST_CASE("two kinds of machine need a network between, or a bandwidth", "[cluster]") {
  SimulatedServer server = linked_server({.prefill_replicas = 1, .decode_replicas = 1});
  server.decode_machine = server.machine;
  const auto found = problems(server);
  REQUIRE_FALSE(found.empty());
  CHECK_THAT(found.front(), ContainsSubstring("no network_link for the KV cache"));
  server.deployment.kv_transfer_bandwidth = 10 * kGBs;
  CHECK(problems(server).empty());
  server.deployment = {};
  REQUIRE_FALSE(problems(server).empty());
  CHECK_THAT(problems(server).front(), ContainsSubstring("decode.machine: is of decode replicas"));
}

TEST_CASE("the vaguer of two machines says how far their steps can be trusted", "[cluster]") {
  SimulatedServer server = two_pools();
  const std::vector<Batch> steps{uniform_batch(Phase::prefill, 1, 200), uniform_batch(Phase::decode, 8, 300)};
  server.decode_machine = server.machine;
  const StepConfidence alike = step_confidence(server, steps);
  CHECK(alike.low <= 1);
  CHECK(alike.high >= 1);
  CHECK(alike.basis == Basis::priors);
}
