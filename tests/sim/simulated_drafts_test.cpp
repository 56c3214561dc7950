// Requests served with drafts under a virtual clock.
#include <algorithm>

#include "sim/serving/simulated_server.hpp"
#include "tests/sim/mixture_servers.hpp"
#include "tests/sim/small_servers.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;
using namespace dculab::sim;
using namespace dculab::sim::test;

namespace {

ModelShape draft_of_llama() {
  ModelShape draft = llama_2_7b();
  draft.name = "draft";
  draft.hidden_size = 512;
  draft.kinds[0].mlp.intermediate_size = 1408;
  draft.layers.assign(4, 0);
  draft.kinds[0].gqa().heads = {8, 8, 64};
  return draft;
}

SimulatedServer drafting_server(const DraftShape& shape, const Acceptance& acceptance) {
  SimulatedServer server = small_server();
  server.options.speculative_config.method = SpeculativeMethod::draft_model;
  server.options.speculative_config.shape = shape;
  server.speculation = Speculation{.draft = draft_of_llama(), .draft_weights = {}, .acceptance = acceptance};
  return server;
}

}  // namespace

TEST_CASE("as many tokens a step are served as the acceptance yields", "[simulate]") {
  const int branches[] = {2, 2};
  const auto check = [](const DraftShape& shape, const Acceptance& acceptance) {
    const ServingRun run = simulate(drafting_server(shape, acceptance), requests_of(60, 50, 400));
    CHECK(run.metrics.output_tokens() == 60 * 400);
    CHECK_THAT(run.drafts.mean_acceptance_length(), WithinRel(expected_tokens(acceptance, shape), 0.02));
    // What a step with a draft yields, and what the first tokens and the last ones add, is all that there is.
    CHECK(run.drafts.num_drafts + run.drafts.num_accepted_tokens <= run.metrics.output_tokens());
    CHECK(run.drafting > Seconds{});
    CHECK(run.time_by_bound.at("drafting") == run.drafting);
  };
  check(chain_shape(4), {.by_depth = {0.8}});
  check(chain_shape(3), {.by_depth = {0.9, 0.5, 0.2}});
  check(full_tree_shape(branches), {.by_rank = {0.6, 0.3}});
}

TEST_CASE("drafts that are never accepted leave the steps as they were, and those always accepted divide them",
          "[simulate]") {
  const RequestWorkload one = requests_of(1, 50, 1 + 5 * 8);
  const ServingRun plain = simulate(small_server(), one);
  const ServingRun never = simulate(drafting_server(chain_shape(4), {.by_depth = {0}}), one);
  CHECK(never.num_steps == plain.num_steps);
  CHECK(never.metrics.latency().mean() > plain.metrics.latency().mean());
  const ServingRun always = simulate(drafting_server(chain_shape(4), {.by_depth = {1}}), one);
  CHECK(always.num_steps == 1 + 8);
  CHECK(always.drafts.num_accepted_tokens == 8 * 4);
  CHECK(always.metrics.latency().mean() < plain.metrics.latency().mean());
}

TEST_CASE("where a step takes as long whatever it does, the speed-up is the closed form's", "[simulate]") {
  SimulatedServer server = drafting_server(chain_shape(5), {.by_depth = {0.75}});
  server.machine.overheads.host_per_step = Seconds(1000);
  const RequestWorkload asked = requests_of(16, 20, 1500);
  const Seconds with = simulate(server, asked).metrics.tpot().mean();
  server.options.speculative_config = {};
  server.speculation.reset();
  const Seconds without = simulate(server, asked).metrics.tpot().mean();
  CHECK_THAT(without / with, WithinRel(lecture_speed_up(0.75, 5, 0), 0.02));
}

TEST_CASE("blocks of drafts are within the pool, and given back", "[simulate]") {
  for (const int blocks : {60, 90, 400}) {
    SimulatedServer server = drafting_server(chain_shape(7), {.by_depth = {0.5}});
    server.num_blocks = blocks;
    int most = 0, last_used = -1;
    std::int64_t tokens = 0;
    const ServingRun run = simulate(
        server, requests_of(40, 100, 120), {}, {.on_step = [&](const ServedStep& step, int /*engine*/) {
          const BlockPool& pool = step.scheduler.pool();
          last_used = pool.num_blocks() - pool.num_free();
          most = std::max(most, last_used);
          tokens += static_cast<std::int64_t>(step.scheduler.sampled().size()) + step.drafts.num_accepted_tokens;
          for (const SequenceSlice& slice : step.plan.batch.sequences) {
            CHECK(slice.num_draft_tokens <= 7);
            CHECK(slice.num_logits <= slice.num_new_tokens);
          }
        }});
    CHECK(run.metrics.output_tokens() == 40 * 120);
    CHECK(tokens >= 40 * 120);  // accepted ones that an answer had no room for are not kept
    CHECK(most <= blocks);
    if (blocks == 60) CHECK(run.num_preemptions > 0);
  }
}

TEST_CASE("a run with drafts is the same each time", "[simulate]") {
  const SimulatedServer server = drafting_server(chain_shape(4), {.by_depth = {0.7}});
  const ServingRun first = simulate(server, poisson_requests(40, 5)),
                   second = simulate(server, poisson_requests(40, 5));
  CHECK(first.drafts == second.drafts);
  CHECK(first.busy == second.busy);
}

TEST_CASE("a drafter's weights and KV leave fewer blocks", "[simulate]") {
  SimulatedServer server = drafting_server(chain_shape(2), {.by_depth = {0.7}});
  server.num_blocks.reset();
  const ServingRun with = simulate(server, requests_of(2, 20, 10));
  server.options.speculative_config = {};
  const ServingRun without = simulate(server, requests_of(2, 20, 10));
  CHECK(with.num_blocks < without.num_blocks);
}

TEST_CASE("prefix caching shares what the drafter computed of a prompt too", "[simulate]") {
  SimulatedServer server = drafting_server(chain_shape(3), {.by_depth = {0.7}});
  RequestWorkload asked = requests_of(30, 300, 40);
  asked.prefix_tokens = 256;
  const Seconds plain = simulate(server, asked).drafting;
  server.options.enable_prefix_caching = true;
  CHECK(simulate(server, asked).drafting < plain);
}

TEST_CASE("a model drafts with its own layer where devices share its experts", "[simulate]") {
  SimulatedServer server = mixture_server(over(8));
  const RequestWorkload asked = requests_of(32, 100, 100);
  const Seconds plain = simulate(server, asked).metrics.tpot().mean();
  server.model.num_nextn_predict_layers = 1;
  server.options.speculative_config.method = SpeculativeMethod::mtp;
  server.options.speculative_config.shape = chain_shape(1);
  server.speculation = Speculation{.draft = {}, .draft_weights = {}, .acceptance = {.by_depth = {0.9}}};
  REQUIRE(problems(server).empty());
  const ServingRun run = simulate(server, asked);
  CHECK_THAT(run.drafts.mean_acceptance_length(), WithinRel(1.9, 0.02));
  CHECK(run.metrics.tpot().mean() < plain);
}

TEST_CASE("what drafts are not simulated with is refused", "[simulate]") {
  const auto refused = [](SimulatedServer server, const std::string& why) {
    const std::vector<std::string> found = problems(server);
    INFO(why);
    CHECK(std::ranges::any_of(found, [&](const std::string& text) { return text.find(why) != text.npos; }));
  };
  SimulatedServer server = drafting_server(chain_shape(2), {.by_depth = {0.7}});
  CHECK(problems(server).empty());
  SimulatedServer other = server;
  other.speculation->draft->vocab_size = 100;
  refused(other, "vocabulary");
  other = server;
  other.speculation->draft.reset();
  refused(other, "needs the model that drafts");
  other = server;
  other.speculation->acceptance = {};
  refused(other, "acceptance: missing");
  other = server;
  other.options.speculative_config.method = SpeculativeMethod::mtp;
  refused(other, "num_nextn_predict_layers");
  other = server;
  other.machine.peer_link = 30 * kGBs;
  other.machine.peers = 7;
  other.deployment.pipeline_parallel_size = 2;
  refused(other, "pipeline");
  other.deployment = {.prefill_replicas = 1, .decode_replicas = 1};
  refused(other, "prefill and decode replicas");
}
