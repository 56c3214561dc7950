// Retention policies in the scheduler: what is kept, and when it goes.
#include "core/kv/retention.hpp"

#include <algorithm>

#include "model/plan_step.hpp"
#include "tests/core/cached_memory.hpp"
#include "tests/core/small_model.hpp"
#include "tests/support/retention_policies.hpp"

using namespace dculab;

namespace {

const Op* find(const StepPlan& plan, OpKind kind) {
  for (const Op& op : plan.ops)
    if (op.kind == kind) return &op;
  return nullptr;
}

Bytes written(const Op& op) {
  for (const Operand& operand : op.operands())
    if (operand.role == OperandRole::kv_write) return operand.unique;
  return {};
}

}  // namespace

TEST_CASE("names of policies are read back", "[kv_retention]") {
  for (const auto policy : {RetentionPolicy::all, RetentionPolicy::window, RetentionPolicy::sinks,
                            RetentionPolicy::heavy_hitters, RetentionPolicy::critical_blocks})
    CHECK(parse_retention_policy(name(policy)) == policy);
  CHECK(parse_retention_policy("heavy-hitters") == RetentionPolicy::heavy_hitters);
  CHECK_FALSE(parse_retention_policy("h2o"));
}

TEST_CASE("a window keeps what it was asked to, and less than a block more", "[kv_retention]") {
  for (const int block_size : {1, 4, 16}) {
    for (const KvRetention& retention : {window_of(10), sinks_of(3, 10)}) {
      const int sinks = retention.policy == RetentionPolicy::sinks ? 3 : 0;
      for (int position = 0; position < 100; ++position) {
        const int evicted = kv_tokens_evicted_at(retention, block_size, position);
        const int in_window = position + 1 - evicted - sinks;
        CHECK(evicted % block_size == 0);
        CHECK(in_window <= 10 + block_size - 1);
        if (position + 1 >= sinks + 10) CHECK(in_window >= 10);
        if (evicted > 0) CHECK(evicted >= kv_tokens_evicted_at(retention, block_size, position - 1));
      }
    }
  }
  CHECK(kv_tokens_evicted_at(hitters_of(3, 4), 16, 6) == 0);
  CHECK(kv_tokens_evicted_at(hitters_of(3, 4), 16, 7) == 1);
  CHECK(kv_tokens_evicted_at(hitters_of(3, 4), 16, 20) == 14);
  CHECK(kv_tokens_evicted_at({}, 16, 1 << 30) == 0);
}

TEST_CASE("what is in the cache follows from the position: chunks and preemption change nothing", "[kv_retention]") {
  int preemptions = 0, shifts = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::vector<Request> requests;
    std::vector<int> arrivals;
    for (int id = 0; id < 12; ++id) {
      const int prompt = 1 + static_cast<int>((seed * 7 + static_cast<unsigned>(id) * 31) % 90);
      requests.push_back(request_of(id, prompt, 1 + (id * 13) % 60));
      arrivals.push_back(id * 2);
    }
    const KvRetention retention = seed % 3 == 0   ? window_of(9 + static_cast<int>(seed % 20))
                                  : seed % 3 == 1 ? sinks_of(1 + static_cast<int>(seed % 20), 11)
                                                  : hitters_of(5, 1 + static_cast<int>(seed % 20));
    const int block_size = 1 << (seed % 5);
    EngineOptions options = options_with(block_size, 2 + static_cast<int>(seed % 6), 8 + static_cast<int>(seed % 40));
    options.kv_retention = retention;
    const auto longest = static_cast<int>(kv_capacity(retention, block_size));
    const int num_blocks = (longest + block_size - 1) / block_size + static_cast<int>(seed % 4) + 1;
    INFO("seed " << seed << ", block size " << block_size);
    CachedMemory memory(options, {.num_blocks = num_blocks, .max_position_embeddings = 100000});
    const ServedTexts served = memory.serve(requests, arrivals);
    REQUIRE(served.tokens.size() == requests.size());
    for (const Request& request : requests) {
      CachedMemory alone(options_with(16, 8, 4096), {.num_blocks = 100, .max_position_embeddings = 100000});
      REQUIRE(alone.serve({request}, {0}).tokens.at(request.id) == served.tokens.at(request.id));
    }
    preemptions += served.num_preemptions;
    shifts += served.num_shifts;
  }
  INFO(preemptions << " preemptions, " << shifts << " shifts");
  CHECK(preemptions > 50);
  CHECK(shifts > 50);
}

TEST_CASE("a text longer than the pool, or than the model's positions, streams through a window", "[kv_retention]") {
  EngineOptions options = options_with(4, 8, 100);
  const SchedulerLimits limits{.num_blocks = 8, .max_position_embeddings = 64};
  const Request endless = request_of(0, 500, 500);
  CHECK_THAT(*Scheduler(options, limits).refusal(endless), ContainsSubstring("longer than max_position_embeddings"));
  options.kv_retention = window_of(20);  // its positions stay as they were
  CHECK_THAT(*Scheduler(options, limits).refusal(endless), ContainsSubstring("longer than max_position_embeddings"));
  options.kv_retention = sinks_of(4, 20);
  CachedMemory memory(options, limits);
  const ServedTexts served = memory.serve({endless}, {0});
  CHECK(served.tokens.at(0).size() == 1000);
  CHECK(served.num_preemptions == 0);
  options.kv_retention = sinks_of(4, 80);
  CHECK_THAT(*Scheduler(options, limits).refusal(endless),
             ContainsSubstring("kv_retention sinks keeps 87 tokens, more than max_position_embeddings (64)"));
  options.kv_retention = sinks_of(4, 40);
  CHECK_THAT(*Scheduler(options, limits).refusal(endless), ContainsSubstring("needs 12 KV blocks"));
}

TEST_CASE("policies bring ops of their own into the plan, and only when there is work for them", "[kv_retention]") {
  EngineOptions options;
  Batch batch = uniform_batch(Phase::decode, 2, 64);
  CHECK(find(plan_step(small_model(), options, batch), OpKind::shift_sink_keys) == nullptr);
  options.kv_retention = sinks_of(4, 60);
  CHECK(find(plan_step(small_model(), options, batch), OpKind::shift_sink_keys) == nullptr);
  batch.sequences[1].num_evicted_tokens = batch.sequences[1].num_newly_evicted_tokens = 16;
  const StepPlan shifted = plan_step(small_model(), options, batch);
  const Op& shift = *find(shifted, OpKind::shift_sink_keys);
  CHECK(shift.m == 4);
  CHECK(shift.n == 2 * 32);
  CHECK(written(shift).value() == 4 * 2 * 32 * 2);
  CHECK(shift.count == 2);

  options.kv_retention = hitters_of(30, 34);
  const StepPlan scored = plan_step(small_model(), options, batch);
  const Op& scores = *find(scored, OpKind::attention_scores);
  CHECK(scores.flops.value() == 2.0 * 2 * 64 * 64);                 // q * k only
  CHECK(scores.operands()[0].unique.value() == 2.0 * 64 * 32 * 2);  // K only
  CHECK(scores.operands()[3].unique.value() == 2.0 * 64 * 2 * 4);   // a sum per KV head
  CHECK(find(scored, OpKind::shift_sink_keys) == nullptr);
}

TEST_CASE("the sinks among new tokens are kept in F32 where they are cached", "[kv_retention]") {
  EngineOptions options;
  options.kv_retention = sinks_of(4, 60);
  const auto last_operand = [&](Phase phase, int context) {
    const StepPlan plan = plan_step(small_model(), options, uniform_batch(phase, 2, context));
    return find(plan, OpKind::rope_and_cache)->operands().back();
  };
  for (const int tokens : {3, 4, 50}) {
    const Operand kept = last_operand(Phase::prefill, tokens);
    CHECK(kept.role == OperandRole::output);
    CHECK(kept.unique.value() == 2.0 * std::min(tokens, 4) * 2 * 32 * 4);
  }
  CHECK(last_operand(Phase::decode, 64).role == OperandRole::kv_write);
  CHECK(last_operand(Phase::decode, 4).role == OperandRole::output);  // the fourth is new
}

TEST_CASE("a decode loads its budget's share of the blocks, the first and the recent ones at least", "[kv_retention]") {
  CHECK(kv_blocks_loaded({}, 100) == 100);
  CHECK(kv_blocks_loaded(critical(0.25), 100) == 25);
  CHECK(kv_blocks_loaded(critical(0.1), 30) == 3);
  CHECK(kv_blocks_loaded(critical(0.1), 31) == 4);
  CHECK(kv_blocks_loaded(critical(0.1), 5) == 2);
  CHECK(kv_blocks_loaded(critical(0.1, 3), 5) == 4);
  CHECK(kv_blocks_loaded(critical(0.1, 3), 2) == 2);
  CHECK(kv_blocks_loaded(critical(1), 77) == 77);
  CHECK(kv_tokens_loaded({}, 16, 1001) == 1001);
  CHECK(kv_tokens_loaded(critical(0.25), 16, 1024) == 256);
  CHECK(kv_tokens_loaded(critical(0.25), 16, 1001) == 15 * 16 + 9);  // 16 of 63 blocks, the last with 9
  CHECK(kv_capacity(critical(0.25), 16) == kv_capacity({}, 16));
}

TEST_CASE("critical blocks add two ops, and attention loads what they choose", "[kv_retention]") {
  EngineOptions options;  // blocks of 16 in F16
  options.kv_retention = critical(0.25);
  const double of_block = 2 * 2 * 16 * 2;  // of 2 KV heads a minimum and a maximum of 16 channels, in BF16
  const StepPlan decode = plan_step(small_model(), options, uniform_batch(Phase::decode, 3, 320));
  const Op& update = *find(decode, OpKind::update_block_bounds);
  CHECK(update.m == 3);
  CHECK(written(update).value() == 3 * of_block);
  const Op& choice = *find(decode, OpKind::choose_critical_blocks);
  CHECK(choice.operands()[1].unique.value() == 3 * 20 * of_block);
  CHECK(choice.operands()[2].unique.value() == 3 * 20 * 4);
  CHECK(choice.flops.value() == 3 * 20 * 2 * 64);
  const Op& attention = *find(decode, OpKind::attention_decode);
  CHECK(attention.attention.context_tokens == 3 * 80);
  CHECK(attention.attention.kv_blocks == 3 * 5);
  CHECK(attention.attention.score_pairs == 3 * 80);
  CHECK(attention.operands()[0].unique.value() == 3 * 80 * 2 * 32 * 2);
  CHECK(attention.operands()[2].unique.value() == 3 * 5 * 2 * 4);  // each KV head has a list

  Batch chunk = uniform_batch(Phase::prefill, 1, 40);
  chunk.sequences[0].num_computed_tokens = 60, chunk.sequences[0].num_new_tokens = 40;
  const StepPlan prefill = plan_step(small_model(), options, chunk);
  CHECK(find(prefill, OpKind::choose_critical_blocks) == nullptr);
  CHECK(written(*find(prefill, OpKind::update_block_bounds)).value() == 4 * of_block);          // tokens 60 to 99
  CHECK(find(prefill, OpKind::update_block_bounds)->operands()[2].unique.value() == of_block);  // 60 to 63 widen
  CHECK(find(prefill, OpKind::attention_prefill)->attention.context_tokens == 100);
  chunk.sequences[0].num_unwritten_tokens = 40;
  CHECK(find(plan_step(small_model(), options, chunk), OpKind::update_block_bounds) == nullptr);
}

TEST_CASE("what was generated is computed once more as it was at first, where decodes see less", "[kv_retention]") {
  for (const bool swaps : {false, true}) {
    EngineOptions options = options_with(4, 4, 16);
    options.kv_retention = critical(0.5);
    if (swaps) options.preemption_mode = PreemptionMode::swap;
    const SchedulerLimits limits{.num_blocks = 14, .max_position_embeddings = 1000, .num_host_blocks = swaps ? 40 : 0};
    Scheduler scheduler(options, limits);
    for (int id = 0; id < 3; ++id) scheduler.submit(request_of(id, 9, 20));
    for (int steps = 0; !scheduler.idle(); ++steps) {
      REQUIRE(steps < 1000);
      const ScheduledStep step = scheduler.schedule();
      for (const SequenceSlice& slice : step.batch.sequences) {
        if (slice.phase == Phase::decode) CHECK(slice.num_new_tokens == 1);
        if (slice.phase == Phase::prefill) CHECK(slice.context_tokens() <= 9);
        if (slice.first_position() >= 9) CHECK(slice.phase == Phase::decode);
      }
      std::vector<Verdict> verdicts(scheduler.sampled().size());
      for (Verdict& verdict : verdicts) verdict.tokens = {1};
      (void)scheduler.finish_step(verdicts, Seconds(1));
      (void)scheduler.take_finished();
    }
    CHECK(scheduler.num_preemptions() > 0);
    CHECK(scheduler.swaps().preemptions == (swaps ? scheduler.num_preemptions() : 0));
  }
}

TEST_CASE("tokens that are not written cost no writing", "[kv_retention]") {
  Batch batch = uniform_batch(Phase::prefill, 1, 10);
  batch.sequences[0].num_unwritten_tokens = 4;
  CHECK(written(*find(plan_step(small_model(), {}, batch), OpKind::rope_and_cache)).value() == 6 * 2 * 32 * 2);
  batch.sequences[0].num_unwritten_tokens = 10;
  CHECK(written(*find(plan_step(small_model(), {}, batch), OpKind::rope_and_cache)).value() == 0);
}

TEST_CASE("a sequence holds blocks for its state, and less of tokens beyond a window", "[kv_retention]") {
  CHECK(KvDemand{}(1000) == 1000);
  const KvDemand recurrent{.state_tokens = 99.5};
  CHECK(recurrent(1) == 101);
  const KvDemand windowed{.window = 100, .beyond = 0.25};
  CHECK(windowed(100) == 100);
  CHECK(windowed(101) == 101);
  CHECK(windowed(500) == 200);
  const SchedulerLimits limits{
      .num_blocks = 10, .max_position_embeddings = 1000, .watermark = 0, .kv_demand = windowed};
  EngineOptions options;
  options.block_size = 16;
  Scheduler scheduler(options, limits, BatchContents::lengths_only);
  Request request{.prompt_token_ids = std::vector<TokenId>(300, 1), .max_tokens = 40};
  REQUIRE_FALSE(scheduler.refusal(request));  // 159 tokens' worth of ten blocks
  scheduler.submit(request);
  CHECK(scheduler.schedule().batch.num_tokens() == 300);
  CHECK(scheduler.pool().num_free() == 0);
  request.max_tokens = 42;
  CHECK(scheduler.refusal(request));
}
