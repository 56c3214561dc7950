// A prompt whose K and V another server computed: it decodes at once, and after a preemption is computed here.
#include "core/scheduler.hpp"
#include "tests/core/requests.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;

namespace {

Request received(SequenceId id, int prompt_tokens, int max_tokens) {
  Request request = request_of(id, prompt_tokens, max_tokens);
  request.num_received_tokens = static_cast<int>(request.prompt_token_ids.size()) - 1;
  return request;
}

ScheduledStep step(Scheduler& scheduler) {
  ScheduledStep scheduled = scheduler.schedule();
  scheduler.finish_step(verdicts_of(std::vector<TokenId>(scheduler.sampled().size(), 0)), Seconds{});
  return scheduled;
}

}  // namespace

TEST_CASE("a received prompt takes its blocks and decodes its last token in its first step") {
  Scheduler scheduler(options_with(16, 4, 64), {.num_blocks = 20, .max_position_embeddings = 512});
  scheduler.submit(received(0, 100, 3));
  const ScheduledStep first = step(scheduler);
  REQUIRE(first.batch.sequences.size() == 1);
  CHECK(first.batch.sequences[0].phase == Phase::decode);
  CHECK(first.batch.sequences[0].num_computed_tokens == 99);
  CHECK(first.batch.sequences[0].num_new_tokens == 1);
  CHECK(first.batch.sequences[0].num_logits == 1);
  CHECK(scheduler.pool().num_free() == 20 - 7);
  CHECK(step(scheduler).batch.sequences[0].context_tokens() == 101);
  CHECK(step(scheduler).batch.sequences[0].context_tokens() == 102);
  const auto finished = scheduler.take_finished();
  REQUIRE(finished.size() == 1);
  CHECK(finished[0]->num_generated() == 3);
  CHECK(finished[0]->num_cached_tokens == 0);
  CHECK(scheduler.pool().num_free() == 20);
}

TEST_CASE("a received prompt waits for its blocks as any other, and shares them where prefixes are cached") {
  EngineOptions options = options_with(16, 4, 64);
  options.enable_prefix_caching = true;
  Scheduler scheduler(options, {.num_blocks = 8, .max_position_embeddings = 512});
  scheduler.submit(received(0, 96, 20));
  scheduler.submit(received(1, 96, 2));
  CHECK(step(scheduler).batch.sequences.size() == 1);
  CHECK(scheduler.num_waiting() == 1);
  while (!scheduler.idle()) static_cast<void>(step(scheduler));
  CHECK(scheduler.take_finished().size() == 2);
  CHECK(scheduler.pool().num_free() == 8);
  CHECK(scheduler.pool().audit().empty());
}

TEST_CASE("a received prompt that is preempted is computed here, in chunks") {
  Scheduler scheduler(options_with(4, 4, 16), {.num_blocks = 12, .max_position_embeddings = 512});
  scheduler.submit(received(0, 20, 20));
  scheduler.submit(received(1, 20, 20));
  int prefilled = 0;
  while (!scheduler.idle())
    for (const SequenceSlice& slice : step(scheduler).batch.sequences)
      if (slice.phase == Phase::prefill) {
        CHECK(slice.id == 1);
        prefilled += slice.num_new_tokens;
      }
  CHECK(scheduler.num_preemptions() > 0);
  CHECK(prefilled >= 20);
  CHECK(scheduler.take_finished().size() == 2);
  CHECK(scheduler.pool().num_free() == 12);
}

TEST_CASE("the blocks of a received prompt are to be written before its first step, but for those found here") {
  EngineOptions options = options_with(16, 4, 64);
  options.enable_prefix_caching = true;
  Scheduler scheduler(options, {.num_blocks = 40, .max_position_embeddings = 512});
  const auto kv = std::make_shared<const std::vector<std::byte>>(7 * 100);
  const auto submit = [&](SequenceId id, int tokens) {
    Request request = received(7, tokens, 3);
    request.id = id;
    request.received_kv = kv;
    REQUIRE_FALSE(scheduler.refusal(request));
    scheduler.submit(request);
  };
  submit(0, 100);  // 99 tokens in 7 blocks
  const ScheduledStep first = step(scheduler);
  REQUIRE(first.received.size() == 1);
  CHECK(first.received[0].kv == kv);
  CHECK(first.received[0].first_block == 0);
  CHECK(first.received[0].blocks == first.batch.block_tables[0]);
  CHECK(step(scheduler).received.empty());
  submit(1, 70);  // begins as the other: four blocks are there
  const ScheduledStep second = step(scheduler);
  REQUIRE(second.received.size() == 1);
  CHECK(second.received[0].first_block == 4);
  REQUIRE(second.received[0].blocks.size() == 1);
  CHECK(second.received[0].blocks[0] == second.batch.block_tables[1][4]);
  while (!scheduler.idle()) static_cast<void>(step(scheduler));
  CHECK(kv.use_count() == 3);  // here and in the two steps
}

TEST_CASE("K and V of part of a prompt are received too, and the rest is computed") {
  Scheduler scheduler(options_with(16, 4, 64), {.num_blocks = 20, .max_position_embeddings = 512});
  Request request = request_of(0, 100, 2);
  request.num_received_tokens = 48;
  request.received_kv = std::make_shared<const std::vector<std::byte>>(3 * 100);
  scheduler.submit(request);
  const ScheduledStep first = step(scheduler);
  REQUIRE(first.received.size() == 1);
  CHECK(first.received[0].blocks.size() == 3);
  CHECK(first.batch.sequences[0].phase == Phase::prefill);
  CHECK(first.batch.sequences[0].num_computed_tokens == 48);
  CHECK(first.batch.sequences[0].num_new_tokens == 52);
}

TEST_CASE("an engine that keeps less than a whole cache receives nothing") {
  EngineOptions options = options_with(16, 4, 64);
  options.kv_cache_dtype = Dtype::kivi4;
  Request request = received(0, 100, 3);
  const Scheduler scheduler(options, {.num_blocks = 20, .max_position_embeddings = 512});
  CHECK_FALSE(scheduler.refusal(request));  // where only lengths matter
  request.received_kv = std::make_shared<const std::vector<std::byte>>(700);
  CHECK_THAT(scheduler.refusal(request).value(), ContainsSubstring("only a whole KV cache"));
}
