// Prefill and decode on replicas of their own.
#include <algorithm>

#include "sim/serving/simulated_server.hpp"
#include "tests/sim/small_servers.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;
using namespace dculab::sim;
using namespace dculab::sim::test;

namespace {

Deployment two_pools(int prefill, int decode) {
  return {.prefill_replicas = prefill,
          .decode_replicas = decode,
          .kv_transfer_bandwidth = 10 * kGBs,
          .kv_transfer_latency = Seconds(1e-3)};
}

}  // namespace

TEST_CASE("a lone request waits for its KV cache to cross the link, once", "[cluster]") {
  const ServingRun apart = simulate(small_server(two_pools(1, 1)), requests_of(1, 300, 12));
  const ServingRun together = simulate(small_server({}), requests_of(1, 300, 12));
  CHECK(apart.metrics.requests() == 1);
  CHECK(apart.metrics.output_tokens() == 12);
  CHECK(apart.metrics.prompt_tokens() == 300);
  CHECK(apart.metrics.ttft().mean() == together.metrics.ttft().mean());
  const double transfer = 300 * 2.0 * 32 * 4096 * 2 / 10e9 + 1e-3;
  CHECK_THAT((apart.metrics.latency().mean() - together.metrics.latency().mean()).value(), WithinRel(transfer, 1e-9));
  CHECK_THAT((apart.metrics.itl().largest() - together.metrics.itl().largest()).value(), WithinRel(transfer, 0.02));
  REQUIRE(apart.replicas.size() == 2);
  CHECK(apart.replicas[0].num_steps == 1);
  CHECK(apart.replicas[1].num_steps == 11);
}

TEST_CASE("the link of a prefill replica carries one KV cache after the other", "[cluster]") {
  SimulatedServer slow = small_server(two_pools(1, 1));
  slow.deployment.kv_transfer_bandwidth = 0.1 * kGBs;
  slow.options.max_num_batched_tokens = 2048;
  // Both prompts are computed in one step.
  const ServingRun run = simulate(slow, requests_of(2, 300, 2));
  const double transfer = 300 * 2.0 * 32 * 4096 * 2 / 0.1e9;
  CHECK_THAT((run.metrics.latency().largest() - run.metrics.latency().smallest()).value(), WithinRel(transfer, 1e-3));
}

TEST_CASE("TTFT is that of servers that only prefill", "[cluster]") {
  const ServingRun apart = simulate(small_server(two_pools(2, 3)), poisson_requests(150, 3, 40));
  const ServingRun prompts = simulate(small_server({.data_parallel_size = 2}), poisson_requests(150, 3, 1));
  CHECK(apart.metrics.ttft().mean() == prompts.metrics.ttft().mean());
  CHECK(apart.metrics.ttft().largest() == prompts.metrics.ttft().largest());
}

TEST_CASE("prompts that arrive do not hold up who decodes", "[cluster]") {
  Seconds longest_decode;
  int mixed = 0;
  const auto see = [&](const ServedStep& step, int engine) {
    const Phase expected = engine < 2 ? Phase::prefill : Phase::decode;
    for (const SequenceSlice& slice : step.plan.batch.sequences) mixed += slice.phase != expected;
    if (engine >= 2) longest_decode = std::max(longest_decode, step.end - step.begin);
  };
  const ServingRun apart = simulate(small_server(two_pools(2, 2)), poisson_requests(120, 2, 60), {}, {.on_step = see});
  CHECK(mixed == 0);
  CHECK(longest_decode < apart.metrics.ttft().smallest());
  // All but the first of a request's gaps are decode steps, waited for by one step at most.
  CHECK(apart.metrics.itl().quantile(0.95) <= longest_decode * (1 + QuantileSketch::kRelativeError));
}

TEST_CASE("every request ends once with all its tokens, with little memory too", "[cluster]") {
  for (const int blocks : {400, 40}) {
    SimulatedServer each = small_server(two_pools(2, 2));
    each.num_blocks = blocks;
    each.options.enable_prefix_caching = true;
    RequestWorkload asked = poisson_requests(300, 20, 40);
    asked.output = {LengthKind::uniform, 1, 0, 1, 80};
    asked.prefix_tokens = 64;
    asked.burstiness = 0.3;
    const ServingRun run = simulate(each, asked);
    RequestSource source(asked);
    std::int64_t tokens = 0;
    while (const auto request = source.next()) tokens += request->max_tokens;
    CHECK(run.metrics.requests() == 300);
    CHECK(run.metrics.output_tokens() == tokens);
    CHECK(run.metrics.prompt_tokens() == 300 * 200);
    CHECK(run.metrics.itl().count() == tokens - 300);
    CHECK((run.num_preemptions > 0) == (blocks == 40));
    CHECK(run.metrics.preemptions() == run.num_preemptions);
  }
}

TEST_CASE("both pools are needed, and the whole KV cache", "[cluster]") {
  SimulatedServer each = small_server(two_pools(1, 1));
  each.options.kv_retention = {.policy = RetentionPolicy::window, .window_tokens = 64};
  REQUIRE(problems(each).size() == 1);
  CHECK_THAT(problems(each).front(), ContainsSubstring("only a whole KV cache"));
  each = small_server(two_pools(1, 1));
  each.deployment.data_parallel_size = 2;
  CHECK_THAT(problems(each).front(), ContainsSubstring("take the place of data_parallel_size"));
  CHECK_THROWS_WITH(simulate(small_server(two_pools(1, 1)), requests_of(3, 5000, 3000)),
                    ContainsSubstring("request 1: the prompt of 5000 tokens with max_tokens 3000"));
}

namespace {

// What a role has to do, in replicas that are busy with nothing else: more than the pool of two has, less than three.
constexpr double kReplicasNeeded = 2.5;

// Of prompts of 480 tokens. Such a step is compute-bound: a token's time does not depend on how steps are filled.
Seconds prefill_time() { return simulate(small_server(), requests_of(1, 480, 1)).metrics.ttft().mean(); }

// That an answer of 240 tokens occupies one of the places of a replica which decodes as many as it may.
Seconds decode_time() {
  const SimulatedServer server = small_server();
  return simulate(server, requests_of(server.options.max_num_seqs, 30, 240)).metrics.tpot().mean() * 240;
}

// First long prompts with a token each beside the first, then short ones with long answers.
RequestWorkload prompts_then_answers(Seconds between_prompts, Seconds between_answers) {
  RequestWorkload workload{.requests = 400, .arrival = ArrivalKind::replay};
  for (int index = 0; index < 200; ++index) workload.recorded.push_back({between_prompts * index, 480, 2});
  const Seconds end = between_prompts * 200 + Seconds(5);  // nothing is left to do
  for (int index = 0; index < 200; ++index) workload.recorded.push_back({end + between_answers * index, 30, 240});
  return workload;
}

SimulatedServer switching_server(Deployment deployment) {
  deployment.role_switching = RoleSwitching{.hold = Seconds(0.5)};
  return small_server(deployment);
}

int switches(const ServingRun& run) {
  int count = 0;
  for (const ReplicaRun& replica : run.replicas) count += replica.role_switches;
  return count;
}

}  // namespace

// By Little's law prefill needs (time of a prompt / time between two) replicas, decode (time of an answer / time
// between two / max_num_seqs). Two replicas of 2.5 fall behind for as long as requests come, so that any threshold is
// passed; three catch up, and what is left for the fourth is little: no more roles change than it takes.
TEST_CASE("replicas follow the load from prefill to decode, and nothing is lost on the way", "[cluster]") {
  const int places = small_server().options.max_num_seqs;
  const Seconds prompt = prefill_time(), answer = decode_time();
  const Seconds between_prompts = prompt / kReplicasNeeded, between_answers = answer / (places * kReplicasNeeded);
  // The other role meanwhile: a second token of each long prompt, and short prompts.
  CHECK(answer / 240 * 2 / between_prompts / places < 0.5);
  CHECK(prompt * 30 / 480 / between_answers < 0.5);
  const RequestWorkload workload = prompts_then_answers(between_prompts, between_answers);
  const ServingRun fixed = simulate(small_server(two_pools(2, 2)), workload);
  const ServingRun following = simulate(switching_server(two_pools(2, 2)), workload);
  CHECK(switches(fixed) == 0);
  CHECK(switches(following) == 3);  // one decode replica to prefill, two back
  for (const ServingRun* run : {&fixed, &following}) {
    CHECK(run->metrics.requests() == 400);
    CHECK(run->metrics.output_tokens() == 200 * 2 + 200 * 240);
  }
  int decoding = 0;
  for (const ReplicaRun& replica : following.replicas) decoding += replica.role == ReplicaRole::decode;
  CHECK(decoding == 3);  // in the end
  CHECK(following.metrics.ttft().mean() < fixed.metrics.ttft().mean());
  CHECK(following.metrics.duration() <= fixed.metrics.duration());
}

TEST_CASE("under an even load roles stay as they are, and so does every figure", "[cluster]") {
  const RequestWorkload workload = poisson_requests(150, 2, 40);
  const ServingRun fixed = simulate(small_server(two_pools(2, 2)), workload);
  const ServingRun following = simulate(switching_server(two_pools(2, 2)), workload);
  CHECK(switches(following) == 0);
  CHECK(fixed.metrics.latency().mean() == following.metrics.latency().mean());
  CHECK(fixed.num_steps == following.num_steps);
}

TEST_CASE("roles switch among three replicas or more that are alike", "[cluster]") {
  CHECK_THAT(problems(switching_server(two_pools(1, 1))).front(), ContainsSubstring("three or more"));
  CHECK_THAT(problems(switching_server({.data_parallel_size = 2})).front(), ContainsSubstring("add prefill_replicas"));
  SimulatedServer server = switching_server(two_pools(2, 2));
  server.deployment.role_switching->prefill_below = 3;
  CHECK_THAT(problems(server).front(), ContainsSubstring("below prefill_above"));
}

TEST_CASE("replicas on a CPU hand the KV cache over through its memory", "[cluster]") {
  SimulatedServer server{cpu_like(), llama_2_7b(), {}, 400, {.prefill_replicas = 1, .decode_replicas = 1}};
  CHECK(problems(server).empty());
  const ServingRun apart = simulate(server, requests_of(1, 300, 12));
  server.deployment = {};
  const ServingRun together = simulate(server, requests_of(1, 300, 12));
  const Machine machine = cpu_like();
  const double bandwidth = (machine.dram().bandwidth * machine.sustained.dram_bandwidth).value() / 4;
  const double transfer = 300 * 2.0 * 32 * 4096 * 2 / bandwidth;
  CHECK_THAT((apart.metrics.latency().mean() - together.metrics.latency().mean()).value(), WithinRel(transfer, 1e-6));
}
