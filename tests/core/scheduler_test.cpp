#include "core/scheduler.hpp"

#include "tests/core/requests.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;

TEST_CASE("decodes come first and a prompt fills the rest of the budget in chunks", "[scheduler]") {
  Scheduler scheduler(options_with(16, 8, 10), {.num_blocks = 100, .max_position_embeddings = 1000});
  const auto finish = [&scheduler] {
    scheduler.finish_step(verdicts_of(std::vector<TokenId>(scheduler.sampled().size(), 5)), Seconds(1));
  };
  scheduler.submit(request_of(0, 4, 10));
  scheduler.submit(request_of(1, 20, 10));

  const Batch first = scheduler.schedule().batch;  // 4 tokens of one prompt, 6 of the other
  REQUIRE(first.sequences.size() == 2);
  REQUIRE(first.sequences[0].num_logits == 1);
  REQUIRE(first.sequences[1].num_new_tokens == 6);
  REQUIRE(first.sequences[1].num_logits == 0);
  finish();

  const Batch second = scheduler.schedule().batch;  // the decode takes 1 of 10
  REQUIRE(second.sequences[0].id == 1);
  REQUIRE(second.sequences[0].phase == Phase::prefill);
  REQUIRE(second.sequences[0].num_computed_tokens == 6);
  REQUIRE(second.sequences[0].num_new_tokens == 9);
  REQUIRE(second.sequences[1].id == 0);
  REQUIRE(second.sequences[1].phase == Phase::decode);
  REQUIRE(second.token_ids.back() == 5);
  finish();

  const Batch third = scheduler.schedule().batch;
  REQUIRE(third.sequences[0].num_new_tokens == 5);
  REQUIRE(third.sequences[0].num_logits == 1);
  REQUIRE(third.block_tables[0].size() == 2);
  finish();
}

TEST_CASE("without chunked prefill a prompt waits for a step that holds it whole", "[scheduler]") {
  EngineOptions options = options_with(16, 8, 10);
  options.enable_chunked_prefill = false;
  Scheduler scheduler(options, {.num_blocks = 100, .max_position_embeddings = 1000});
  scheduler.submit(request_of(0, 6, 10));
  scheduler.submit(request_of(1, 6, 10));
  REQUIRE(scheduler.schedule().batch.num_tokens() == 6);
  scheduler.finish_step(verdicts_of(std::vector<TokenId>{5}), Seconds(1));
  REQUIRE(scheduler.schedule().batch.num_tokens() == 7);
  scheduler.finish_step(verdicts_of(std::vector<TokenId>{5, 5}), Seconds(2));
}

TEST_CASE("a budget smaller than the number of sequences goes to the oldest", "[scheduler]") {
  Scheduler scheduler(options_with(16, 8, 3), {.num_blocks = 100, .max_position_embeddings = 1000});
  for (int id = 0; id < 5; ++id) scheduler.submit(request_of(id, 1, 2));
  std::vector<std::vector<SequenceId>> served;
  for (int step = 0; !scheduler.idle(); ++step) {
    served.emplace_back();
    for (const SequenceSlice& slice : scheduler.schedule().batch.sequences) served.back().push_back(slice.id);
    scheduler.finish_step(verdicts_of(std::vector<TokenId>(scheduler.sampled().size(), 5)), Seconds(step));
    REQUIRE(scheduler.take_finished().size() == (step == 1 ? 3u : step == 3 ? 2u : 0u));
  }
  REQUIRE(served == std::vector<std::vector<SequenceId>>{{0, 1, 2}, {0, 1, 2}, {3, 4}, {3, 4}});
}

TEST_CASE("the youngest is preempted, keeps its tokens and comes back first", "[scheduler]") {
  // Two prompts fill 4 blocks of 4; the older one's first decode needs a fifth.
  Scheduler scheduler(options_with(4, 8, 100), {.num_blocks = 4, .max_position_embeddings = 1000});
  scheduler.submit(request_of(0, 8, 3));
  scheduler.submit(request_of(1, 8, 3));
  scheduler.submit(request_of(2, 1, 1));
  REQUIRE(scheduler.schedule().batch.sequences.size() == 2);
  scheduler.finish_step(verdicts_of(std::vector<TokenId>{50, 51}), Seconds(1));

  for (const double now : {2.0, 3.0}) {  // 0 goes on alone, no request is admitted past 1
    const Batch alone = scheduler.schedule().batch;
    REQUIRE(alone.sequences.size() == 1);
    REQUIRE(alone.sequences[0].id == 0);
    scheduler.finish_step(verdicts_of(std::vector<TokenId>{52}), Seconds(now));
  }
  REQUIRE(scheduler.num_preemptions() == 1);
  REQUIRE(scheduler.take_finished().size() == 1);

  const Batch recompute = scheduler.schedule().batch;
  REQUIRE(recompute.sequences[0].id == 1);
  REQUIRE(recompute.sequences[0].phase == Phase::prefill);
  REQUIRE(recompute.sequences[0].num_new_tokens == 9);
  REQUIRE(recompute.token_ids[8] == 51);
  REQUIRE(recompute.sequences[1].id == 2);
  scheduler.finish_step(verdicts_of(std::vector<TokenId>{53, 54}), Seconds(4));
}

TEST_CASE("the watermark holds back a newcomer but not the only one", "[scheduler]") {
  const SchedulerLimits limits{.num_blocks = 10, .max_position_embeddings = 1000, .watermark = 0.2};
  Scheduler scheduler(options_with(16, 8, 1000), limits);
  scheduler.submit(request_of(0, 5 * 16, 2));
  scheduler.submit(request_of(1, 4 * 16, 2));  // would leave 1 block of the 2
  REQUIRE(scheduler.schedule().batch.sequences.size() == 1);

  Scheduler empty(options_with(16, 8, 1000), limits);
  empty.submit(request_of(0, 10 * 16, 1));
  REQUIRE(empty.schedule().batch.num_tokens() == 160);
}

TEST_CASE("what can never be served is refused with the reason", "[scheduler]") {
  EngineOptions options = options_with(16, 8, 64);
  Scheduler scheduler(options, {.num_blocks = 10, .max_position_embeddings = 200});
  REQUIRE_THAT(*scheduler.refusal(request_of(0, 0, 4)), ContainsSubstring("the prompt is empty"));
  REQUIRE_THAT(*scheduler.refusal(request_of(0, 4, 0)), ContainsSubstring("max_tokens must be at least 1, not 0"));
  REQUIRE_THAT(*scheduler.refusal(request_of(0, 100, 101)), ContainsSubstring("max_position_embeddings (200)"));
  REQUIRE_THAT(*scheduler.refusal(request_of(0, 100, 62)),
               ContainsSubstring("needs 11 KV blocks of 16 tokens, but the pool has 10"));
  REQUIRE_FALSE(scheduler.refusal(request_of(0, 100, 61)));  // the last token needs no slot
  options.enable_chunked_prefill = false;
  Scheduler whole(options, {.num_blocks = 10, .max_position_embeddings = 200});
  REQUIRE_THAT(*whole.refusal(request_of(0, 65, 4)), ContainsSubstring("chunked prefill is off"));
  REQUIRE_FALSE(whole.refusal(request_of(0, 64, 4)));
}

TEST_CASE("a stop token ends a request unless it is told to ignore it", "[scheduler]") {
  for (const EosHandling eos : {EosHandling::stop, EosHandling::ignore}) {
    Scheduler scheduler(options_with(16, 8, 64), {.num_blocks = 10, .max_position_embeddings = 200});
    Request request = request_of(3, 4, 2);
    request.stop_tokens = {9, 42};
    request.eos = eos;
    scheduler.submit(request);
    int steps = 0;
    for (; !scheduler.idle(); ++steps) {
      REQUIRE(scheduler.schedule().batch.sequences.size() == 1);
      scheduler.finish_step(verdicts_of(std::vector<TokenId>{42}), Seconds(steps));
    }
    const auto finished = scheduler.take_finished();
    REQUIRE(finished.size() == 1);
    REQUIRE(steps == (eos == EosHandling::stop ? 1 : 2));
    REQUIRE(finished[0]->finish_reason == (eos == EosHandling::stop ? FinishReason::stop : FinishReason::length));
    REQUIRE(finished[0]->generated().back() == 42);
  }
}

TEST_CASE("a step that is only predicted has lengths and nothing else", "[scheduler]") {
  const SchedulerLimits limits{.num_blocks = 10, .max_position_embeddings = 200};
  Scheduler scheduler(options_with(16, 8, 64), limits, BatchContents::lengths_only);
  scheduler.submit(request_of(0, 20, 2));
  const Batch batch = scheduler.schedule().batch;
  REQUIRE(batch.num_tokens() == 20);
  REQUIRE(batch.token_ids.empty());
  REQUIRE(batch.block_tables.empty());
}
