#include "core/serving_loop.hpp"

#include <algorithm>
#include <map>

#include "model/plan_step.hpp"
#include "tests/core/small_model.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;

namespace {

// A step takes one second, and a tenth more for each of its tokens.
class CopyCountingExecutor final : public Executor {
 public:
  void copy_blocks(std::span<const BlockCopy> copies) override { num_copies += static_cast<int>(copies.size()); }
  StepResult run(const StepPlan& plan) override {
    REQUIRE_FALSE(plan.ops.empty());
    return {.duration = Seconds(1.0 + 0.1 * static_cast<double>(plan.batch.num_tokens())), .op_durations = {}};
  }
  int num_copies = 0;
};

// The n-th generated token is 10 * id + n, from the row that the batch gave the sequence.
class CountingTokens final : public TokenSource {
 public:
  TokenId next_token(const Sequence& sequence, int logits_row) override {
    rows.push_back(logits_row);
    return static_cast<TokenId>(10 * sequence.request.id + sequence.num_generated());
  }
  std::vector<int> rows;
};

Request request_at(double arrival, SequenceId id, int prompt_tokens, int max_tokens) {
  Request request;
  request.id = id;
  request.prompt_token_ids.assign(static_cast<std::size_t>(prompt_tokens), 1);
  request.max_tokens = max_tokens;
  request.arrival = Seconds(arrival);
  return request;
}

// A serving loop on a virtual clock with everything it needs.
struct LoopServer {
  explicit LoopServer(int max_num_batched_tokens = 100, int num_blocks = 64, ServingCallbacks callbacks = {})
      : scheduler((options.max_num_batched_tokens = max_num_batched_tokens, options),
                  {.num_blocks = num_blocks, .max_position_embeddings = model.max_position_embeddings}),
        loop({planner_of(model, options), scheduler, executor, tokens, clock}, std::move(callbacks)) {}

  ModelShape model = small_model();
  EngineOptions options;
  Scheduler scheduler;
  CopyCountingExecutor executor;
  CountingTokens tokens;
  VirtualClock clock;
  ServingLoop loop;
};

void require_seconds(Seconds actual, double expected) { REQUIRE_THAT(actual.value(), WithinRel(expected, 1e-12)); }

}  // namespace

TEST_CASE("one request, by hand", "[serving_loop]") {
  LoopServer server;
  REQUIRE_FALSE(server.loop.submit(request_at(5, 7, 10, 3)));
  server.loop.run();
  // Idle until 5; prefill of 10 ends at 7; decodes end at 8.1 and 9.2.
  require_seconds(server.clock.now(), 9.2);
  const ServingReport& report = server.loop.report();
  REQUIRE(report.requests.size() == 1);
  require_seconds(report.requests[0].ttft, 2.0);
  require_seconds(report.requests[0].tpot, 1.1);
  require_seconds(report.requests[0].latency, 4.2);
  require_seconds(report.duration, 4.2);
  require_seconds(report.executor_time, 4.2);
  REQUIRE(report.num_steps == 3);
  REQUIRE(report.num_prompt_tokens == 10);
  REQUIRE(report.num_generated_tokens == 3);
}

TEST_CASE("requests that arrive over time share steps, by hand", "[serving_loop]") {
  LoopServer server;
  REQUIRE_FALSE(server.loop.submit(request_at(2.5, 2, 20, 2)));
  REQUIRE_FALSE(server.loop.submit(request_at(0, 1, 10, 3)));
  REQUIRE_FALSE(server.loop.submit(request_at(100, 3, 1, 1)));
  server.loop.run();
  // 0..2 prefill of 1; 2..3.1 its decode, during which 2 arrives; 3.1..6.2 prefill of 2 (20 tokens) beside the last
  // decode of 1; 6.2..7.3 decode of 2; idle until 100; 100..101.1 the third.
  const auto& requests = server.loop.report().requests;
  REQUIRE(requests.size() == 3);
  REQUIRE(requests[0].id == 1);
  require_seconds(requests[0].ttft, 2.0);
  require_seconds(requests[0].tpot, (6.2 - 2.0) / 2);
  require_seconds(requests[0].latency, 6.2);
  REQUIRE(requests[1].id == 2);
  require_seconds(requests[1].ttft, 6.2 - 2.5);
  require_seconds(requests[1].tpot, 1.1);
  require_seconds(requests[2].ttft, 1.1);
  REQUIRE(requests[2].tpot == Seconds(0));
  require_seconds(server.loop.report().duration, 101.1);
  require_seconds(server.loop.report().executor_time, 2.0 + 1.1 + 3.1 + 1.1 + 1.1);
  REQUIRE(server.tokens.rows == std::vector<int>{0, 0, 0, 1, 0, 0});
}

TEST_CASE("an idle loop waits for the first of those to come, and equals keep their order", "[serving_loop]") {
  LoopServer server(5);
  REQUIRE_FALSE(server.loop.submit(request_at(20, 0, 5, 1)));
  for (const int id : {8, 4, 6}) REQUIRE_FALSE(server.loop.submit(request_at(10, id, 5, 1)));
  server.loop.run();
  const auto& requests = server.loop.report().requests;
  REQUIRE(requests.size() == 4);
  const SequenceId order[] = {8, 4, 6, 0};
  const double latencies[] = {1.5, 3.0, 4.5, 1.5};
  for (std::size_t index = 0; index < 4; ++index) {
    REQUIRE(requests[index].id == order[index]);
    require_seconds(requests[index].latency, latencies[index]);
  }
}

TEST_CASE("a chunked prompt has its first token after its last chunk", "[serving_loop]") {
  LoopServer server(8);
  REQUIRE_FALSE(server.loop.submit(request_at(0, 0, 20, 1)));
  server.loop.run();
  REQUIRE(server.loop.report().num_steps == 3);
  require_seconds(server.loop.report().requests[0].ttft, 3 * 1.0 + 20 * 0.1);
}

TEST_CASE("tokens stream in order and each request finishes once, after its last token", "[serving_loop]") {
  std::map<SequenceId, std::vector<TokenId>> streamed;
  std::map<SequenceId, int> finished;
  ServingCallbacks callbacks;
  callbacks.on_tokens = [&](const Sequence& sequence, int count) {
    REQUIRE(count == 1);
    REQUIRE(finished[sequence.request.id] == 0);
    REQUIRE(sequence.token_times.size() == static_cast<std::size_t>(sequence.num_generated()));
    streamed[sequence.request.id].push_back(sequence.tokens.back());
  };
  callbacks.on_finished = [&](const Sequence& sequence) {
    ++finished[sequence.request.id];
    REQUIRE(std::vector<TokenId>(sequence.generated().begin(), sequence.generated().end()) ==
            streamed[sequence.request.id]);
  };
  LoopServer server(100, 64, callbacks);
  for (int id = 0; id < 5; ++id) REQUIRE_FALSE(server.loop.submit(request_at(id, id, 3 + id, 4)));
  server.loop.run();
  for (int id = 0; id < 5; ++id) {
    REQUIRE(streamed[id] == std::vector<TokenId>{10 * id, 10 * id + 1, 10 * id + 2, 10 * id + 3});
    REQUIRE(finished[id] == 1);
  }
}

TEST_CASE("a request may follow from one that has finished", "[serving_loop]") {
  ServingLoop* loop = nullptr;
  int left = 3;
  ServingCallbacks callbacks;
  callbacks.on_finished = [&](const Sequence& sequence) {
    if (left-- == 0) return;
    REQUIRE_FALSE(loop->submit(request_at(sequence.token_times.back().value() + 0.5, left, 10, 1)));
  };
  LoopServer server(100, 64, callbacks);
  loop = &server.loop;
  REQUIRE_FALSE(server.loop.submit(request_at(0, 100, 10, 1)));
  server.loop.run();
  REQUIRE(server.loop.report().requests.size() == 4);
  require_seconds(server.clock.now(), 4 * 2.0 + 3 * 0.5);
}

TEST_CASE("what can never be served is refused on submission and leaves no trace", "[serving_loop]") {
  LoopServer server(100, 2);
  REQUIRE_THAT(server.loop.submit(request_at(0, 0, 40, 4)).value(), ContainsSubstring("the pool has 2"));
  REQUIRE_FALSE(server.loop.step());
  REQUIRE(server.loop.report().requests.empty());
}

TEST_CASE("preemptions are reported, and cost time but no tokens", "[serving_loop]") {
  LoopServer roomy;
  LoopServer tight(100, 5);
  for (LoopServer* server : {&roomy, &tight}) {
    for (int id = 0; id < 4; ++id) REQUIRE_FALSE(server->loop.submit(request_at(0, id, 16, 40)));
    server->loop.run();
    REQUIRE(server->loop.report().num_generated_tokens == 160);
    REQUIRE(server->loop.report().requests.size() == 4);
  }
  REQUIRE(roomy.loop.report().num_preemptions == 0);
  REQUIRE(tight.loop.report().num_preemptions > 0);
  REQUIRE(tight.clock.now() > roomy.clock.now());
}

namespace {

// Guesses that the tokens go on counting, and is wrong about the third. A proposal takes a quarter of a second.
class CountingDrafter final : public Drafter {
 public:
  Proposal propose(const Batch& batch, std::span<const ScheduledSequence> sequences) override {
    REQUIRE(batch.sequences.size() == sequences.size());
    Proposal proposal{.trees = {}, .duration = Seconds(0.25)};
    for (const ScheduledSequence& scheduled : sequences) {
      const TokenId next = scheduled.sequence->tokens.back() + 1;
      const std::vector<TokenId> guesses{next, next + 1, 99};
      const auto count = static_cast<std::size_t>(std::min({3, scheduled.max_draft_tokens, scheduled.max_draft_depth}));
      proposal.trees.push_back(chain(std::span(guesses).first(count)));
    }
    return proposal;
  }
  void judged(std::span<const JudgedSequence> sequences) override {
    for (const JudgedSequence& judged : sequences)
      rows.push_back({judged.first_row, static_cast<int>(judged.verdict->path.size())});
  }
  void forget(SequenceId) override { ++forgotten; }

  std::vector<std::pair<int, int>> rows;
  int forgotten = 0;
};

// Counts on from the last token; the first is 10 times the id.
class JudgingTokens final : public TokenSource {
 public:
  TokenId next_token(const Sequence& sequence, int) override {
    return sequence.num_generated() == 0 ? static_cast<TokenId>(10 * sequence.request.id) : sequence.tokens.back() + 1;
  }
  Verdict judge(const Sequence& sequence, const DraftTree& draft, int) override {
    Verdict verdict;
    TokenId next = sequence.tokens.back() + 1;
    for (int node = 0; node < draft.num_tokens() && draft.nodes[static_cast<std::size_t>(node)].token == next; ++node) {
      verdict.path.push_back(node);
      verdict.tokens.push_back(next++);
    }
    verdict.tokens.push_back(next);
    return verdict;
  }
};

}  // namespace

TEST_CASE("drafted tokens come several a step, by hand", "[serving_loop]") {
  const ModelShape model = small_model();
  EngineOptions options;
  options.speculative_config = {.method = SpeculativeMethod::ngram, .shape = chain_shape(3)};
  Scheduler scheduler(options, {.num_blocks = 64, .max_position_embeddings = 512});
  CopyCountingExecutor executor;
  JudgingTokens tokens;
  VirtualClock clock;
  CountingDrafter drafter;
  std::vector<int> counts;
  Seconds drafting;
  ServingLoop loop({.plan = planner_of(model, options),
                    .scheduler = scheduler,
                    .executor = executor,
                    .tokens = tokens,
                    .clock = clock,
                    .drafter = &drafter},
                   {.on_tokens = [&](const Sequence&, int count) { counts.push_back(count); },
                    .on_step = [&](const ServedStep& step) { drafting += step.drafting; }});
  REQUIRE_FALSE(loop.submit(request_at(0, 4, 10, 8)));
  loop.run();
  // A prefill of 10 with one token; drafts of 3, of which 2 are right, twice: 3 tokens each; then one is left, and none
  // is drafted. Steps of 10, 4, 4 and 1 tokens.
  CHECK(counts == std::vector<int>{1, 3, 3, 1});
  CHECK(drafter.rows == std::vector<std::pair<int, int>>{{0, 0}, {0, 2}, {0, 2}, {0, 0}});
  CHECK(drafter.forgotten == 1);
  const ServingReport& report = loop.report();
  CHECK(report.num_generated_tokens == 8);
  CHECK(report.num_steps == 4);
  CHECK(report.drafts.num_drafts == 2);
  CHECK(report.drafts.num_draft_tokens == 6);
  CHECK(report.drafts.by_depth == std::vector<DraftCounts::Place>{{2, 2}, {2, 2}, {2, 0}});
  require_seconds(report.drafting, 4 * 0.25);
  require_seconds(drafting, 4 * 0.25);
  require_seconds(report.executor_time, 4 * 1.0 + 19 * 0.1);
  require_seconds(clock.now(), 4 * 1.25 + 19 * 0.1);
}
