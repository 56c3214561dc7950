// Served requests with padding and with repeated prompts: what is skipped costs nothing, and never slows a server down.
#include <algorithm>

#include "tests/sim/small_servers.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;
using namespace dculab::sim;
using namespace dculab::sim::test;

namespace {

RequestWorkload uneven(int requests) {
  RequestWorkload workload{.requests = requests};
  workload.prompt = {LengthKind::uniform, 1, 0, 20, 300};
  workload.output = {LengthKind::uniform, 1, 0, 5, 60};
  return workload;
}

// As study::resolve_requests does.
ServingRun served(SimulatedServer server, RequestWorkload workload, const KvSkip& skip) {
  server.options.kv_skip = skip;
  REQUIRE(problems(server).empty());
  workload.padding.skipped = skip.padding;
  return simulate(server, workload);
}

}  // namespace

TEST_CASE("skipped padding costs nothing: the run is that of prompts without it", "[skip]") {
  for (const Batching batching : {Batching::continuous, Batching::per_batch})
    for (const PromptPadding padding : {PromptPadding{PadTo::longest}, PromptPadding{PadTo::length, 200}}) {
      SimulatedServer server = small_server();
      server.options.batching = batching;
      RequestWorkload workload = uneven(60);
      const ServingRun bare = served(server, workload, {});
      workload.padding = padding;
      const ServingRun padded = served(server, workload, {});
      const ServingRun skipped = served(server, workload, {.padding = true});
      CHECK(skipped.metrics.duration() == bare.metrics.duration());
      CHECK(skipped.busy == bare.busy);
      CHECK(skipped.metrics.prompt_tokens() == bare.metrics.prompt_tokens());
      CHECK(skipped.metrics.padding_tokens() == padded.metrics.prompt_tokens() - bare.metrics.prompt_tokens());
      CHECK(skipped.metrics.padding_tokens() > 1000);
      CHECK(padded.metrics.padding_tokens() == 0);
      CHECK(skipped.metrics.duration() < padded.metrics.duration());
      CHECK(skipped.metrics.ttft().mean() < padded.metrics.ttft().mean());
      CHECK(skipped.timeline.most_used_blocks() <= padded.timeline.most_used_blocks());
    }
}

TEST_CASE("a prompt that all ask is computed once, and its blocks are held once", "[skip]") {
  constexpr int kRequests = 16, kPrompt = 330;
  RequestWorkload same = requests_of(kRequests, kPrompt, 20);
  same.duplicate_prompts = 1;
  const ServingRun plain = served(small_server(), same, {});
  const ServingRun skipped = served(small_server(), same, {.duplicate_prompts = true});
  CHECK(skipped.metrics.duplicate_tokens() == (kRequests - 1) * kPrompt);
  CHECK(skipped.metrics.cached_tokens() == 0);
  CHECK(skipped.metrics.prompt_tokens() == plain.metrics.prompt_tokens());
  CHECK(skipped.metrics.output_tokens() == plain.metrics.output_tokens());
  CHECK(skipped.busy < plain.busy);
  CHECK(skipped.metrics.ttft().mean() < plain.metrics.ttft().mean());
  // 20 whole blocks of the prompt once, and of each request its last 10 tokens with what it has generated but the last.
  CHECK(skipped.timeline.most_used_blocks() == 20 + kRequests * 2);
  CHECK(plain.timeline.most_used_blocks() >= kRequests * 21);
}

TEST_CASE("without duplicates to find, looking for them changes nothing", "[skip]") {
  const RequestWorkload workload = uneven(60);
  const ServingRun plain = served(small_server(), workload, {});
  const ServingRun looked = served(small_server(), workload, {.duplicate_prompts = true});
  CHECK(looked.metrics.duration() == plain.metrics.duration());
  CHECK(looked.metrics.duplicate_tokens() == 0);
}

TEST_CASE("the more requests repeat a prompt, the more is skipped, and never is a server slower for it", "[skip]") {
  std::int64_t last = 0;
  for (const double share : {0.1, 0.3, 0.6, 0.9}) {
    RequestWorkload workload = uneven(80);
    workload.duplicate_prompts = share;
    const ServingRun plain = served(small_server(), workload, {});
    const ServingRun skipped = served(small_server(), workload, {.duplicate_prompts = true});
    CHECK(skipped.metrics.duplicate_tokens() > last);
    CHECK(skipped.busy < plain.busy);
    CHECK(skipped.metrics.duration() < plain.metrics.duration());
    CHECK(skipped.metrics.output_tokens() == plain.metrics.output_tokens());
    last = skipped.metrics.duplicate_tokens();
  }
}

TEST_CASE("who is preempted shares its prompt again, so that little memory does not make skipping slower", "[skip]") {
  for (const int blocks : {40, 60, 100}) {
    INFO(blocks << " blocks");
    SimulatedServer server = small_server();
    server.num_blocks = blocks;
    RequestWorkload same = requests_of(40, 330, 100);
    same.duplicate_prompts = 0.9;
    const ServingRun plain = served(server, same, {});
    const ServingRun skipped = served(server, same, {.duplicate_prompts = true});
    CHECK(skipped.num_preemptions > 0);
    CHECK(skipped.busy < plain.busy);
    CHECK(skipped.metrics.duration() < plain.metrics.duration());
    CHECK(skipped.metrics.output_tokens() == plain.metrics.output_tokens());
  }
}

TEST_CASE("prompts handed over between replicas say what was skipped where they were computed", "[skip]") {
  Deployment apart;
  apart.prefill_replicas = apart.decode_replicas = 1;
  RequestWorkload same = requests_of(8, 100, 20);
  same.duplicate_prompts = 1;
  same.padding = {PadTo::length, 128};
  const ServingRun run = served(linked_server(apart), same, {.padding = true, .duplicate_prompts = true});
  CHECK(run.metrics.padding_tokens() == 8 * 28);
  CHECK(run.metrics.duplicate_tokens() > 0);
  CHECK(run.metrics.duplicate_tokens() % 100 == 0);
}
