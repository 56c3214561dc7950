// Requests that are called off: their blocks come back, and nobody else notices.
#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "core/serving_loop.hpp"
#include "model/plan_step.hpp"
#include "tests/core/requests.hpp"
#include "tests/core/small_model.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;

namespace {

class StepCountingExecutor final : public Executor {
 public:
  void copy_blocks(std::span<const BlockCopy>) override {}
  void swap_blocks(std::span<const BlockCopy>, std::span<const BlockCopy>) override {}
  void forget(SequenceId id) override { forgotten.push_back(id); }
  StepResult run(const StepPlan&) override { return {.duration = Seconds(1), .op_durations = {}}; }
  std::vector<SequenceId> forgotten;
};

// Depends on the sequence's own tokens only.
class SummedTokens final : public TokenSource {
 public:
  TokenId next_token(const Sequence& sequence, int) override {
    std::int64_t sum = 1;
    for (const TokenId token : sequence.tokens) sum = (31 * sum + token) % 97;
    return static_cast<TokenId>(sum);
  }
};

struct AbortedRun {
  std::map<SequenceId, std::vector<TokenId>> finished{};
  std::vector<SequenceId> aborted{};
};

// 60 requests into memory for a few; with `aborts` every third step calls one of them off.
AbortedRun run_with_aborts(EngineOptions options, bool aborts, std::uint64_t seed) {
  const ModelShape model = small_model();
  Scheduler scheduler(options, {.num_blocks = 24, .max_position_embeddings = 512, .num_host_blocks = 8});
  StepCountingExecutor executor;
  SummedTokens tokens;
  VirtualClock clock;
  AbortedRun result;
  ServingLoop loop({planner_of(model, options), scheduler, executor, tokens, clock},
                   {.on_finished = [&](const Sequence& each) { result.finished[each.request.id] = each.tokens; }});
  for (int id = 0; id < 60; ++id) {
    Request request = request_of(id, 5 + id % 17, 1 + id % 23);
    request.arrival = Seconds(id / 4);
    REQUIRE_FALSE(loop.submit(std::move(request)));
  }
  std::mt19937_64 random(seed);
  for (int step = 0; loop.step(); ++step) {
    if (aborts && step % 3 == 0) {
      const auto id = static_cast<SequenceId>(random() % 60);
      if (loop.abort(id)) result.aborted.push_back(id);
      REQUIRE_FALSE(loop.abort(id));
    }
    REQUIRE(scheduler.pool().audit().empty());
    REQUIRE(scheduler.host_pool().audit().empty());
  }
  REQUIRE(scheduler.pool().num_free() == scheduler.pool().num_blocks());
  REQUIRE(scheduler.host_pool().num_free() == scheduler.host_pool().num_blocks());
  return result;
}

}  // namespace

TEST_CASE("whoever is not aborted gets the same tokens, and all blocks come back", "[abort]") {
  EngineOptions options = options_with(4, 6, 32);
  for (const PreemptionMode mode : {PreemptionMode::recompute, PreemptionMode::swap})
    for (const bool caches : {false, true}) {
      CAPTURE(mode, caches);
      options.preemption_mode = mode;
      options.enable_prefix_caching = caches;
      const AbortedRun whole = run_with_aborts(options, false, 0);
      REQUIRE(whole.finished.size() == 60);
      for (const std::uint64_t seed : {1, 2, 3}) {
        AbortedRun cut = run_with_aborts(options, true, seed);
        REQUIRE(cut.aborted.size() >= 5);
        REQUIRE(cut.finished.size() + cut.aborted.size() == 60);
        for (const auto& [id, tokens] : cut.finished) REQUIRE(tokens == whole.finished.at(id));
      }
    }
}

TEST_CASE("a request is aborted wherever it is: arriving, waiting, in its prefill, decoding", "[abort]") {
  const EngineOptions options = options_with(4, 2, 8);
  const ModelShape model = small_model();
  Scheduler scheduler(options, {.num_blocks = 100, .max_position_embeddings = 512});
  StepCountingExecutor executor;
  SummedTokens tokens;
  VirtualClock clock;
  ServingLoop loop({planner_of(model, options), scheduler, executor, tokens, clock});
  for (int id = 0; id < 4; ++id) {
    Request request = request_of(id, id == 1 ? 30 : 4, 20);
    if (id == 3) request.arrival = Seconds(1e6);
    REQUIRE_FALSE(loop.submit(std::move(request)));
  }
  REQUIRE(loop.step());  // 0 has its prompt, 1 a part of it, 2 waits, 3 has not arrived
  REQUIRE(scheduler.num_running() == 2);
  REQUIRE(scheduler.num_waiting() == 1);
  for (const SequenceId id : {3, 2, 1, 0}) REQUIRE(loop.abort(id));
  REQUIRE(scheduler.idle());
  REQUIRE(scheduler.pool().num_free() == 100);
  REQUIRE(executor.forgotten == std::vector<SequenceId>{2, 1, 0});
  REQUIRE_FALSE(loop.step());
  REQUIRE(loop.report().requests.empty());
  REQUIRE_FALSE(loop.abort(0));
}
