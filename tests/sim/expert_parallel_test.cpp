// Replicas whose devices share routed experts: two micro-batches, groups that stand for others, a shared KV store.
#include <array>

#include "model/plan_step.hpp"
#include "sim/cost/micro_batches.hpp"
#include "sim/serving/step_sample.hpp"
#include "tests/sim/mixture_servers.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;
using namespace dculab::sim;
using namespace dculab::sim::test;

namespace {

[[nodiscard]] Seconds step_of(const SimulatedServer& server, const Batch& batch) {
  return phase_times(server, std::array{batch}).front();
}

[[nodiscard]] double rate(const ServingRun& run) {
  return static_cast<double>(run.metrics.output_tokens()) / run.metrics.duration().value();
}

}  // namespace

TEST_CASE("a batch is cut into two with as many tokens, and loses none", "[experts]") {
  Batch mixed = uniform_batch(Phase::prefill, 3, 101);
  mixed.sequences.push_back({.id = 9, .num_computed_tokens = 50});
  Batch first, second;
  REQUIRE(split_batch(mixed, first, second));
  CHECK(first.num_tokens() == 152);
  CHECK(second.num_tokens() == 152);
  CHECK(first.sequences.size() == 2);
  CHECK(first.sequences.back().num_logits == 0);
  CHECK(second.sequences.front().num_computed_tokens == 51);
  CHECK(second.sequences.front().num_logits == 1);
  CHECK_FALSE(split_batch(uniform_batch(Phase::decode, 1, 100), first, second));
}

TEST_CASE("two micro-batches take no less than the larger of arithmetic and exchange, and no more than both",
          "[experts]") {
  const SimulatedServer server = mixture_server(over(32, 32));
  const ModelShape part =
      part_of_layers(server.deployment.of(ReplicaRole::both), server.machine, server.model, server.options);
  for (const Phase phase : {Phase::prefill, Phase::decode}) {
    Batch first, second;
    REQUIRE(split_batch(uniform_batch(phase, phase == Phase::prefill ? 4 : 64, 1000), first, second));
    const StepPlan plans[]{plan_step(part, server.options, first), plan_step(part, server.options, second)};
    const StepPrice prices[]{price_step(server.machine, plans[0]), price_step(server.machine, plans[1])};
    const OverlappedPrice both = overlapped(server.machine, plans[0], prices[0], plans[1], prices[1]);
    const Seconds one_by_one = prices[0].seconds + prices[1].seconds,
                  exchange = exchange_time(prices[0]) + exchange_time(prices[1]);
    CHECK(both.hidden > Seconds());
    CHECK(both.seconds < one_by_one);
    CHECK(both.seconds >= one_by_one - exchange - prices[0].host - prices[1].host);
    CHECK(both.seconds > exchange);
  }
}

TEST_CASE("two micro-batches gain where steps are large and lose where weights are most of a step", "[experts]") {
  const Batch large = uniform_batch(Phase::prefill, 8, 2048), small = uniform_batch(Phase::decode, 2, 100);
  CHECK(step_of(mixture_server(over(32, 32, 2)), large).value() <
        step_of(mixture_server(over(32, 32, 1)), large).value());
  CHECK(step_of(mixture_server(over(32, 32, 2)), small).value() >
        step_of(mixture_server(over(32, 32, 1)), small).value());
}

TEST_CASE("one group of devices stands for all: twice the groups and requests, twice the rate", "[experts]") {
  const ServingRun eight = simulate(mixture_server(over(8)), requests_of(8 * 64, 500, 60));
  const ServingRun sixteen = simulate(mixture_server(over(16)), requests_of(16 * 64, 500, 60));
  CHECK(eight.one_in == 8);
  CHECK(eight.num_engines == 1);
  CHECK(eight.metrics.requests() == 8 * 64);
  CHECK(eight.metrics.output_tokens() == 8 * 64 * 60);
  CHECK(sixteen.metrics.requests() == 16 * 64);
  CHECK(rate(sixteen) > 1.4 * rate(eight));
  CHECK(rate(sixteen) < 2.6 * rate(eight));
}

TEST_CASE("pools with settings of their own are simulated by what divides both", "[experts]") {
  const ServingRun run = simulate(mixture_server(pools(32, 144)), requests_of(16 * 40, 500, 40));
  CHECK(run.one_in == 16);
  REQUIRE(run.replicas.size() == 2);
  CHECK(run.num_engines == 2 + 9);
  CHECK(run.metrics.requests() == 16 * 40);
  CHECK(run.replicas[0].requests == 40);
  CHECK(run.replicas[1].requests == 40);
  CHECK(run.time_by_bound.at("exchange") > Seconds());
  for (const ReplicaRun& replica : run.replicas) CHECK(replica.busy <= run.metrics.duration());
}

TEST_CASE("a hit is read from the store at the node's rate, and not computed", "[experts]") {
  Deployment deployment = over(8);
  const RequestWorkload one = requests_of(8, 4096, 4);  // one of them simulated
  const ServingRun computed = simulate(mixture_server(deployment), one);
  deployment.kv_store = KvStore{.read_bandwidth = 40 * kGBs, .latency = Seconds(1e-3), .hit_rate = 0.75};
  const ServingRun read = simulate(mixture_server(deployment), one);
  CHECK(computed.metrics.cached_tokens() == 0);
  CHECK(read.metrics.cached_tokens() == 8 * 3072);
  CHECK(computed.metrics.stored_tokens() == 0);
  CHECK(read.metrics.stored_tokens() == 8 * 3072);
  CHECK(read.num_steps < computed.num_steps);
  deployment.kv_store->latency = Seconds(2e-3);
  const Seconds later = simulate(mixture_server(deployment), one).metrics.ttft().mean();
  CHECK_THAT((later - read.metrics.ttft().mean()).value(), WithinRel(1e-3, 0.05));
  // Eight groups share the node's 40 GB/s.
  const double bytes = 3072.0 * 6 * 576 * 2;
  CHECK(store_reading_time(deployment, node_of_eight(), deepseek_like(), Dtype::bf16, 3072).value() ==
        Approx(8 * bytes / 40e9));
}

TEST_CASE("without a hit rate a prompt finds what an earlier one began with", "[experts]") {
  Deployment deployment = over(8);
  deployment.kv_store = KvStore{.read_bandwidth = 40 * kGBs};
  RequestWorkload shared = requests_of(8 * 8, 1024, 4);
  shared.prefix_tokens = 512;
  CHECK(simulate(mixture_server(deployment), shared).metrics.cached_tokens() == 8 * 7 * 512);
  shared.prefix_tokens = 0;
  CHECK(simulate(mixture_server(deployment), shared).metrics.cached_tokens() == 0);
}

TEST_CASE("what the store had and what the device found are told apart", "[experts]") {
  RequestWorkload shared = requests_of(8 * 8, 1024, 4);
  shared.prefix_tokens = 512;
  SimulatedServer server = mixture_server(over(8));
  server.options.enable_prefix_caching = true;
  const ServingRun found = simulate(server, shared);
  CHECK(found.metrics.cached_tokens() > 0);
  CHECK(found.metrics.stored_tokens() == 0);
  server.options.enable_prefix_caching = false;
  server.deployment = pools(32, 32);  // through both pools
  server.deployment.kv_store = KvStore{.read_bandwidth = 40 * kGBs, .hit_rate = 0.5};
  const ServingRun read = simulate(server, requests_of(4 * 32, 1024, 4));
  CHECK(read.metrics.stored_tokens() == 4 * 32 * 512);
  CHECK(read.metrics.cached_tokens() == read.metrics.stored_tokens());
}

TEST_CASE("requests that read from the store count where they will be computed", "[experts]") {
  Deployment deployment = pools(32, 32);
  deployment.prefill = over(64).of(ReplicaRole::both);  // two of which stand for all, each with a reader of its own
  deployment.kv_store = KvStore{.read_bandwidth = 1e-3 * kGBs, .hit_rate = 0.5};
  const ServingRun run = simulate(mixture_server(deployment), requests_of(4 * 32, 1024, 2));
  const QuantileSketch& ttft = run.metrics.ttft();
  CHECK(ttft.quantile(1) / ttft.quantile(0) == Approx(2).epsilon(0.1));  // not 4, one after the other
}

TEST_CASE("requests divide by the number of which one is simulated", "[experts]") {
  CHECK_THROWS_WITH(simulate(mixture_server(over(8)), requests_of(12, 1024, 4)),
                    ContainsSubstring("of every 8 requests one is simulated, and 12 do not divide by that"));
}

TEST_CASE("a store keeps prompts of which blocks are all", "[experts]") {
  Deployment deployment = over(8);
  deployment.kv_store = KvStore{.read_bandwidth = 40 * kGBs, .hit_rate = 0.5};
  SimulatedServer server = mixture_server(deployment);
  server.options.kv_retention.policy = RetentionPolicy::window;
  const auto found = problems(deployment, server.machine, server.model, server.options);
  CHECK(std::ranges::any_of(found, [](const std::string& each) { return each.starts_with("kv_store: only a whole"); }));
}

TEST_CASE("experts that are placed anew cost their bytes over the link, once an interval", "[experts]") {
  SimulatedServer server = mixture_server(over(144, 32));
  const Batch batch = uniform_batch(Phase::decode, 32, 1000);
  const Seconds before = step_of(server, batch);
  server.deployment.experts.rebalance_interval = Seconds(600);
  const double moved = 4 * 2 * 3.0 * 2048 * 7168 / 50e9;
  CHECK_THAT(step_of(server, batch) / before, WithinRel(1 + moved / 600, 1e-6));
}

TEST_CASE("what a deployment of experts lacks is told", "[experts]") {
  const auto first = [](const SimulatedServer& server) { return problems(server).front(); };
  CHECK(problems(mixture_server(over(144, 32))).empty());
  CHECK_THAT(first(mixture_server(over(144))), ContainsSubstring("256 experts do not divide over 144 devices"));
  SimulatedServer server = mixture_server(over(32, 32));
  server.machine.network_link = {};
  CHECK_THAT(first(server), ContainsSubstring("no network_link to exchange tokens over 32 devices"));
  server = mixture_server(over(8));
  server.model = llama_3_8b();
  CHECK_THAT(first(server), ContainsSubstring("llama-3-8b has no experts to share"));
  server = mixture_server({});
  server.deployment.experts.num_redundant_experts = 8;
  CHECK_THAT(first(server), ContainsSubstring("add expert_parallel_size"));
  server = mixture_server(over(8));
  server.deployment.pipeline_parallel_size = 2;
  CHECK_THAT(first(server), ContainsSubstring("pipeline_parallel_size must be 1"));
  server = mixture_server(pools(32, 100));
  CHECK_THAT(first(server), ContainsSubstring("decode: 256 experts and 32 redundant ones do not divide over 100"));
  server = mixture_server(over(8));
  server.options.gpu_memory_utilization = 0.05;
  CHECK_THAT(first(server), ContainsSubstring("leaves no room for a KV block"));
}

TEST_CASE("the fullest stage of a pipeline is the one with the most bytes of weights", "[cluster]") {
  const Machine machine = node_of_eight();
  EngineOptions options;
  options.weights = {Dtype::fp8_e4m3, 0};
  const ReplicaDevices two{.tensor_parallel_size = 1, .pipeline_parallel_size = 2};
  const ModelShape part =
      part_of_a_device(two, machine, deepseek_like(), options);  // dense, dense, moe | moe, moe, moe
  CHECK(part.num_layers() == 3);
  CHECK(part.kinds.size() == 1);
  CHECK(part.kinds[0].experts.has_value());
  CHECK(part_of_a_device(two, machine, llama_2_7b(), {}).num_layers() == 16);
}
