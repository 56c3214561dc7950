#include "sim/serving/simulated_server.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "model/plan_step.hpp"
#include "sim/cost/step_price.hpp"
#include "tests/sim/small_servers.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;
using namespace dculab::sim;
using namespace dculab::sim::test;

TEST_CASE("one request takes the sum of its steps' prices", "[simulate]") {
  const SimulatedServer one = small_server();
  const ServingRun run = simulate(one, requests_of(1, 100, 5));
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
    RequestWorkload asked = requests_of(80, 200, 40);
    asked.arrival = ArrivalKind::gamma;
    asked.requests_per_second = rate;
    const ServingRun run = simulate(small_server(), asked);
    CHECK(run.metrics.requests() == 80);
    CHECK(run.metrics.ttft().mean() >= last_ttft);
    last_ttft = run.metrics.ttft().mean();
    CHECK(run.busy <= run.metrics.duration() * (1 + 1e-9));
  }
}

TEST_CASE("prefix caching, chunked prefill and more memory do what they are for", "[simulate]") {
  RequestWorkload asked = requests_of(60, 300, 60);
  asked.prefix_tokens = 256;
  SimulatedServer each = small_server();
  const ServingRun plain = simulate(each, asked);
  each.options.enable_prefix_caching = true;
  const ServingRun cached = simulate(each, asked);
  CHECK(cached.metrics.cached_tokens() >= 59 * 256 - 15 * 256);
  CHECK(cached.metrics.ttft().mean() < plain.metrics.ttft().mean());
  CHECK(cached.busy < plain.busy);

  each = small_server();
  each.num_blocks = 80;
  const ServingRun little = simulate(each, asked);
  CHECK(little.num_preemptions > 0);
  CHECK(plain.num_preemptions == 0);
  CHECK(little.metrics.duration() > plain.metrics.duration());
  CHECK(little.timeline.most_used_blocks() <= 80);

  each = small_server();
  each.options.batching = Batching::per_batch;
  asked.output = {LengthKind::uniform, 1, 0, 10, 110};
  const ServingRun per_batch = simulate(each, asked);
  each.options.batching = Batching::continuous;
  CHECK(simulate(each, asked).metrics.duration() < per_batch.metrics.duration());
}

TEST_CASE("what cannot be served is refused in words", "[simulate]") {
  CHECK_THROWS_WITH(simulate(small_server(), requests_of(3, 5000, 3000)),
                    ContainsSubstring("request 1: the prompt of 5000 tokens"));
  SimulatedServer none = small_server();
  none.num_blocks = {};
  none.machine.memory.back().size = Bytes(1e9);
  REQUIRE(problems(none).size() == 1);
  CHECK_THAT(problems(none).front(), ContainsSubstring("leaves no room for a KV block in the memory of mi50-like"));
  SimulatedServer vast = small_server();
  vast.num_blocks = {};
  vast.machine.memory.back().size = Bytes(0x1p60);
  REQUIRE(problems(vast).size() == 1);
  CHECK_THAT(problems(vast).front(), ContainsSubstring("more than a simulation takes (1073741824); raise"));
}

TEST_CASE("a server with room for a thousand million blocks serves as one with enough", "[simulate]") {
  const RequestWorkload asked = requests_of(20, 300, 60);
  SimulatedServer vast = small_server();
  vast.num_blocks = kMostBlocks;
  vast.options.enable_prefix_caching = true;
  SimulatedServer enough = vast;
  enough.num_blocks = 20 * (360 / 16 + 1) * 2;
  CHECK(simulate(vast, asked).metrics.duration() == simulate(enough, asked).metrics.duration());
}

TEST_CASE("swapping serves the same requests, moves every block both ways and is charged", "[simulate]") {
  SimulatedServer each = small_server();
  each.num_blocks = 80;
  each.machine.host_link = 32 * kGBs;
  const RequestWorkload asked = requests_of(60, 300, 60);
  const ServingRun recomputed = simulate(each, asked);
  each.options.preemption_mode = PreemptionMode::swap;
  const ServingRun swapped = simulate(each, asked);
  CHECK(recomputed.swaps == SwapCounts{});
  CHECK(swapped.swaps.preemptions == swapped.num_preemptions);
  CHECK(swapped.num_preemptions > 0);
  CHECK(swapped.metrics.requests() == 60);
  CHECK(swapped.swaps.blocks_in == swapped.swaps.blocks_out);
  // A block of 16 tokens of Llama-2-7B in F16 is 8 MiB, in 64 pieces.
  const double blocks = 2.0 * static_cast<double>(swapped.swaps.blocks_out);
  CHECK(swapped.swapped_out == 8 * kMiB * static_cast<double>(swapped.swaps.blocks_out));
  const Seconds expected = blocks * (8 * kMiB / (32 * kGBs) + 64 * each.machine.overheads.kernel_launch);
  CHECK_THAT(swapped.time_by_bound.at("swap").value(), WithinRel(expected.value(), 1e-9));
  CHECK_FALSE(swapped.time_by_bound.contains("block copies"));
  Seconds by_bound;
  for (const auto& [bound, time] : swapped.time_by_bound) by_bound += time;
  CHECK_THAT(by_bound.value(), WithinRel(swapped.busy.value(), 1e-9));
}

TEST_CASE("swapping on several devices moves each one's part over its own link", "[simulate]") {
  SimulatedServer each = small_server({.tensor_parallel_size = 2});
  each.machine.peer_link = 30 * kGBs;
  each.machine.host_link = 32 * kGBs;
  each.num_blocks = 80;
  each.options.preemption_mode = PreemptionMode::swap;
  const ServingRun run = simulate(each, requests_of(60, 300, 60));
  const double blocks = 2.0 * static_cast<double>(run.swaps.blocks_out);
  const Seconds expected = blocks * (4 * kMiB / (32 * kGBs) + 64 * each.machine.overheads.kernel_launch);
  CHECK_THAT(run.time_by_bound.at("swap").value(), WithinRel(expected.value(), 1e-9));
  CHECK(run.swapped_out == 8 * kMiB * static_cast<double>(run.swaps.blocks_out));
}

TEST_CASE("swapping needs a link to the host, and room there", "[simulate]") {
  SimulatedServer each = small_server();
  each.options.preemption_mode = PreemptionMode::swap;
  REQUIRE(problems(each).size() == 1);
  CHECK_THAT(problems(each).front(), ContainsSubstring("has no host_link"));
  each.machine.host_link = 32 * kGBs;
  each.num_blocks = 80;
  each.options.swap_space = 40 * kMiB;  // 5 blocks, no sequence is as short
  CHECK(problems(each).empty());
  const ServingRun run = simulate(each, requests_of(60, 300, 60));
  CHECK(run.num_preemptions > 0);
  CHECK(run.swaps == SwapCounts{});
  each.machine = cpu_like();
  CHECK(problems(each).empty());
}

TEST_CASE("a server reads one request after the other before its engine has it", "[simulate]") {
  SimulatedServer each = small_server();
  const RequestWorkload two = requests_of(2, 100, 5);
  const ServingRun plain = simulate(each, two);
  each.machine.stack.host_per_request = Seconds(0.5);
  each.machine.stack.host_per_prompt_token = Seconds(0.005);
  const ServingRun read = simulate(each, two);
  const ServingRun one = simulate(each, requests_of(1, 100, 5));
  const ServingRun alone = simulate(small_server(), requests_of(1, 100, 5));
  CHECK_THAT((one.metrics.ttft().mean() - alone.metrics.ttft().mean()).value(), WithinRel(1.0, 1e-9));
  CHECK_THAT((one.metrics.latency().mean() - alone.metrics.latency().mean()).value(), WithinRel(1.0, 1e-9));
  CHECK(read.metrics.ttft().largest() >= Seconds(2));
  CHECK(read.metrics.ttft().smallest() < Seconds(1) + plain.metrics.ttft().largest());
  CHECK(read.metrics.tpot().mean() <= plain.metrics.tpot().mean());
}

TEST_CASE("with steps scheduled ahead, a request that arrives at a busy server waits a step longer", "[simulate]") {
  SimulatedServer each = small_server();
  const Seconds step = simulate(each, requests_of(1, 100, 200)).metrics.tpot().mean();
  RequestWorkload two = requests_of(2, 100, 200);
  two.arrival = ArrivalKind::replay;
  two.recorded = {{Seconds{}, 100, 200}, {100.5 * step, 100, 200}};
  const Seconds between = simulate(each, two).metrics.ttft().largest();
  each.machine.stack.host_steps_ahead = 1;
  const ServingRun ahead = simulate(each, two);
  CHECK_THAT((ahead.metrics.ttft().largest() - between).value(), WithinRel(step.value(), 0.05));
  // At an idle server there is no step to wait for.
  CHECK(simulate(each, requests_of(1, 100, 5)).metrics.ttft().mean() ==
        simulate(small_server(), requests_of(1, 100, 5)).metrics.ttft().mean());
}
