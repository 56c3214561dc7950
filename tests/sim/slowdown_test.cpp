// How much slower a request is than alone on the same devices.
#include "core/serving_metrics.hpp"
#include "sim/serving/alone_latency.hpp"
#include "sim/serving/simulated_server.hpp"
#include "tests/sim/small_servers.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;
using namespace dculab::sim;
using namespace dculab::sim::test;

namespace {

SimulatedServer slow_server(const Deployment& deployment = {}) {
  SimulatedServer server = small_server(deployment);
  server.machine.peer_link = 30 * kGBs;
  server.options.max_num_batched_tokens = 128;
  return server;
}

RequestWorkload poisson(int requests, double rate) {
  RequestWorkload workload{.requests = requests, .arrival = ArrivalKind::gamma};
  workload.prompt = {LengthKind::uniform, 1, 0, 50, 500};
  workload.output = {LengthKind::uniform, 1, 0, 1, 60};
  workload.requests_per_second = rate;
  return workload;
}

const ServiceLevel kWithin{.slowdown = 1.5};

}  // namespace

TEST_CASE("a request alone is not slowed down, on any deployment", "[slowdown]") {
  for (const Deployment& deployment :
       {Deployment{}, Deployment{.tensor_parallel_size = 2}, Deployment{.pipeline_parallel_size = 4},
        Deployment{.prefill_replicas = 1, .decode_replicas = 1, .kv_transfer_latency = Seconds(1e-3)}}) {
    const ServingRun run = simulate(slow_server(deployment), poisson(30, 1e-3), kWithin);
    CHECK(run.metrics.slowdown().count() == 30);
    CHECK_THAT(run.metrics.slowdown().smallest().value(), WithinRel(1, 1e-6));
    CHECK_THAT(run.metrics.slowdown().largest().value(), WithinRel(1, 1e-6));
    CHECK(run.metrics.requests_within_objective() == 30);
  }
}

TEST_CASE("where other tenants use the caches, a request alone begins as cold as one that is served after a pause") {
  SimulatedServer strange = slow_server();
  strange.machine = cpu_like();
  strange.model = tiny_llama();
  strange.machine.memory[2].retention_time = Seconds(5e-3);
  const ServingRun run = simulate(strange, poisson(30, 1e-3), kWithin);
  const ServingRun own = simulate(
      [&] {
        strange.machine.memory[2].retention_time = {};
        return strange;
      }(),
      poisson(30, 1e-3));
  CHECK(run.metrics.latency().mean() > own.metrics.latency().mean());
  CHECK_THAT(run.metrics.slowdown().mean().value(), WithinRel(1, 0.01));
  CHECK_THAT(run.metrics.slowdown().largest().value(), WithinRel(1, 0.02));
}

TEST_CASE("load slows requests down, and goodput counts those within the bound", "[slowdown]") {
  double last = 1;
  std::int64_t within = 100;
  for (const double rate : {0.2, 2.0, 20.0}) {
    const QuantileSketch slowdown = simulate(slow_server(), poisson(100, rate), kWithin).metrics.slowdown();
    CHECK(slowdown.smallest().value() >= 1 - 1e-6);
    CHECK(slowdown.mean().value() > last);
    last = slowdown.mean().value();
    const std::int64_t now = simulate(slow_server(), poisson(100, rate), kWithin).metrics.requests_within_objective();
    CHECK(now <= within);
    within = now;
  }
  CHECK(within < 50);
}

TEST_CASE("an objective for the slowdown is not met where it is not known", "[slowdown]") {
  Request request;
  request.prompt_token_ids = {1, 2, 3};
  Sequence sequence(request);
  sequence.tokens.push_back(0);
  sequence.token_times.emplace_back(2.0);
  ServingMetrics metrics(kWithin);
  metrics.add(sequence);
  CHECK(metrics.requests_within_objective() == 0);
  CHECK(metrics.slowdown().count() == 0);
  metrics.add(sequence, Seconds(1.5));
  metrics.add(sequence, Seconds(1.0));
  CHECK(metrics.requests_within_objective() == 1);
  CHECK(metrics.slowdown().largest() == Seconds(2.0));
}
