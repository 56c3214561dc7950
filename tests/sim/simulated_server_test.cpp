#include "sim/serving/simulated_server.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "sim/cost/step_price.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;
using namespace dculab::sim;
using namespace dculab::sim::test;

namespace {

SimulatedServer server() {
  SimulatedServer server{mi50_like(), llama_2_7b(), {}, 400};
  server.options.max_num_seqs = 16;
  server.options.max_num_batched_tokens = 512;
  return server;
}

RequestWorkload workload(int requests, int prompt, int output) {
  RequestWorkload workload{.requests = requests};
  workload.prompt.center = prompt;
  workload.output.center = output;
  return workload;
}

}  // namespace

TEST_CASE("one request takes the sum of its steps' prices", "[simulate]") {
  const SimulatedServer one = server();
  const ServingRun run = simulate(one, workload(1, 100, 5));
  const auto price = [&](Phase phase, int context) {
    return price_step(one.machine, plan_step(one.model, one.options, uniform_batch(phase, 1, context))).seconds;
  };
  Seconds expected = price(Phase::prefill, 100);
  CHECK_THAT(run.metrics.ttft().mean().value(), WithinRel(expected.value(), 1e-9));
  for (int context = 101; context <= 104; ++context) expected += price(Phase::decode, context);
  CHECK_THAT(run.metrics.latency().mean().value(), WithinRel(expected.value(), 1e-9));
  CHECK(run.num_steps == 5);
  CHECK_THAT(run.busy.value(), WithinRel(expected.value(), 1e-9));
  Seconds by_bound;
  for (const auto& [bound, time] : run.time_by_bound) by_bound += time;
  CHECK_THAT(by_bound.value(), WithinRel(run.busy.value(), 1e-9));
}

TEST_CASE("a busier server makes its users wait longer and never serves more than comes", "[simulate]") {
  Seconds last_ttft;
  for (const double rate : {0.1, 1.0, 10.0, 100.0}) {
    RequestWorkload asked = workload(80, 200, 40);
    asked.arrival = ArrivalKind::gamma;
    asked.requests_per_second = rate;
    const ServingRun run = simulate(server(), asked);
    CHECK(run.metrics.requests() == 80);
    CHECK(run.metrics.ttft().mean() >= last_ttft);
    last_ttft = run.metrics.ttft().mean();
    CHECK(run.busy <= run.metrics.duration() * (1 + 1e-9));
  }
}

TEST_CASE("prefix caching, chunked prefill and more memory do what they are for", "[simulate]") {
  RequestWorkload asked = workload(60, 300, 60);
  asked.prefix_tokens = 256;
  SimulatedServer each = server();
  const ServingRun plain = simulate(each, asked);
  each.options.enable_prefix_caching = true;
  const ServingRun cached = simulate(each, asked);
  CHECK(cached.metrics.cached_tokens() >= 59 * 256 - 15 * 256);
  CHECK(cached.metrics.ttft().mean() < plain.metrics.ttft().mean());
  CHECK(cached.busy < plain.busy);

  each = server();
  each.num_blocks = 80;
  const ServingRun little = simulate(each, asked);
  CHECK(little.num_preemptions > 0);
  CHECK(plain.num_preemptions == 0);
  CHECK(little.metrics.duration() > plain.metrics.duration());
  CHECK(little.timeline.most_used_blocks() <= 80);

  each = server();
  each.options.batching = Batching::per_batch;
  asked.output = {LengthKind::uniform, 1, 0, 10, 110};
  const ServingRun per_batch = simulate(each, asked);
  each.options.batching = Batching::continuous;
  CHECK(simulate(each, asked).metrics.duration() < per_batch.metrics.duration());
}

TEST_CASE("what cannot be served is refused in words", "[simulate]") {
  CHECK_THROWS_WITH(simulate(server(), workload(3, 5000, 3000)),
                    ContainsSubstring("request 1: the prompt of 5000 tokens"));
  SimulatedServer none = server();
  none.num_blocks = {};
  none.machine.memory.back().size = Bytes(1e9);
  REQUIRE(problems(none).size() == 1);
  CHECK_THAT(problems(none).front(), ContainsSubstring("leaves no room for a KV block in the memory of mi50-like"));
}
