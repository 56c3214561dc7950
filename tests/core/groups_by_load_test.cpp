// Two sets of KV heads: which of them a request gets, and what a scheduler and its loop make of it.
#include "core/groups_by_load.hpp"

#include <map>
#include <random>

#include "core/serving_loop.hpp"
#include "tests/core/requests.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;

namespace {

constexpr int kBlocks = 40, kTokensPerSlot = 4;

// A step takes a second, and a tenth more for each of its tokens. With prices in the place of kernels no op is needed.
class HeadSetExecutor final : public Executor {
 public:
  explicit HeadSetExecutor(HeadSet set) : set_(set) {}
  void copy_blocks(std::span<const BlockCopy>) override {}
  void swap_blocks(std::span<const BlockCopy> out, std::span<const BlockCopy> in) override {
    num_swapped += out.size() + in.size();
  }
  StepResult run(const StepPlan& plan) override {
    CHECK(plan.batch.head_set == set_);
    return {.duration = Seconds(1.0 + 0.1 * static_cast<double>(plan.batch.num_tokens())), .op_durations = {}};
  }
  std::size_t num_swapped = 0;

 private:
  HeadSet set_;
};

class RowTokens final : public TokenSource {
 public:
  TokenId next_token(const Sequence& sequence, int logits_row) override {
    rows.push_back({sequence.head_set, logits_row});
    return 5;
  }
  std::vector<std::pair<HeadSet, int>> rows;
};

EngineOptions options_of(std::optional<GroupsByLoad> groups) {
  EngineOptions options = options_with(4, 8, 64);
  options.groups_by_load = groups;
  return options;
}

struct GroupServer {
  explicit GroupServer(const EngineOptions& options, ServingCallbacks callbacks = {}, int host_blocks = 0)
      : scheduler(options, {.num_blocks = kBlocks,
                            .max_position_embeddings = 1000,
                            .num_host_blocks = host_blocks,
                            .few_tokens_per_slot = options.groups_by_load ? kTokensPerSlot : 1}),
        loop({.plan = [](StepPlan&) {},
              .scheduler = scheduler,
              .executor = many,
              .tokens = tokens,
              .clock = clock,
              .few_heads = {[](StepPlan&) {}, &few}},
             std::move(callbacks)) {}

  void submit(double arrival, SequenceId id, int prompt, int max_tokens) {
    Request request = request_of(id, prompt, max_tokens);
    request.arrival = Seconds(arrival);
    REQUIRE_FALSE(loop.submit(request));
  }

  Scheduler scheduler;
  HeadSetExecutor many{HeadSet::many}, few{HeadSet::few};
  RowTokens tokens;
  VirtualClock clock;
  ServingLoop loop;
};

constexpr GroupsByLoad kGroupRule{.waiting_above = 4, .waiting_below = 1, .usage_above = 0.9, .usage_below = 0.5};

}  // namespace

TEST_CASE("the choice changes above one threshold and back below the other", "[groups_by_load]") {
  HeadSetController controller(kGroupRule);
  CHECK(controller.look(4, 0.9) == HeadSet::many);  // neither is exceeded
  CHECK(controller.look(5, 0.0) == HeadSet::few);   // by waiting requests alone
  CHECK(controller.look(2, 0.0) == HeadSet::few);   // one too many to change back
  CHECK(controller.look(1, 0.51) == HeadSet::few);  // blocks are still in use
  CHECK(controller.look(1, 0.5) == HeadSet::many);
  CHECK(controller.look(2, 0.89) == HeadSet::many);  // between the thresholds
  CHECK(controller.look(0, 0.91) == HeadSet::few);   // by blocks alone
  CHECK(controller.switches() == 3);
  for (const auto& [heads, set] :
       {std::pair{HeadAssignment::many, HeadSet::many}, {HeadAssignment::few, HeadSet::few}}) {
    GroupsByLoad fixed = kGroupRule;
    fixed.heads = heads;
    HeadSetController always(fixed);
    CHECK(always.look(0, 0) == set);
    CHECK(always.look(100, 1) == set);
    CHECK(always.switches() == 0);
  }
}

TEST_CASE("thresholds without a distance, and what goes with one set only, are refused", "[groups_by_load]") {
  const auto refused = [](const EngineOptions& options, const std::string& why) {
    const auto found = problems(options);
    REQUIRE(found.size() == 1);
    CHECK_THAT(found.front(), ContainsSubstring("groups_by_load") && ContainsSubstring(why));
  };
  CHECK(problems(options_of(kGroupRule)).empty());
  refused(options_of(GroupsByLoad{.waiting_above = 2, .waiting_below = 2}), "waiting_below");
  refused(options_of(GroupsByLoad{.usage_above = 0.5, .usage_below = 0.7}), "usage_below");
  EngineOptions options = options_of(kGroupRule);
  options.enable_prefix_caching = true;
  refused(options, "enable_prefix_caching");
  options = options_of(kGroupRule);
  options.speculative_config.method = SpeculativeMethod::ngram;
  options.speculative_config.shape = chain_shape(2);
  refused(options, "speculative_config");
  options = options_of(kGroupRule);
  options.kv_retention = {.policy = RetentionPolicy::window, .window_tokens = 16};
  refused(options, "kv_retention window");
  options = options_of(kGroupRule);
  options.kv_cache_dtype = Dtype::kivi4;
  refused(options, "kivi4");
}

TEST_CASE("a burst gets few heads, who comes later many again, and a step of both runs one after the other",
          "[groups_by_load]") {
  std::vector<std::pair<HeadSet, std::pair<Seconds, Seconds>>> parts;
  std::map<SequenceId, HeadSet> sets;
  GroupServer server(options_of(kGroupRule),
                     {.on_finished = [&](const Sequence& each) { sets[each.request.id] = each.head_set; },
                      .on_step =
                          [&](const ServedStep& step) {
                            parts.push_back({step.plan.batch.head_set, {step.begin, step.end}});
                          }});
  server.submit(0, 0, 8, 30);                                         // alone: many
  for (SequenceId id = 1; id <= 6; ++id) server.submit(5, id, 8, 4);  // six wait: few
  server.submit(500, 7, 8, 4);
  server.loop.run();
  CHECK(sets.at(0) == HeadSet::many);
  for (SequenceId id = 1; id <= 6; ++id) CHECK(sets.at(id) == HeadSet::few);
  CHECK(sets.at(7) == HeadSet::many);
  const HeadSetCounts& counts = server.scheduler.head_sets();
  CHECK(counts.requests == std::array<std::int64_t, 2>{2, 6});
  CHECK(counts.tokens == std::array<std::int64_t, 2>{34, 24});
  CHECK(counts.switches == 2);
  // The burst's prompts and their three decodes run beside the first request.
  CHECK(counts.steps_of_both == 4);
  CHECK(counts.steps == std::ssize(parts) - counts.steps_of_both);
  CHECK(server.loop.report().num_steps == std::ssize(parts));
  for (std::size_t part = 1; part < parts.size(); ++part) {
    if (parts[part].first == HeadSet::many) continue;
    CHECK(parts[part - 1].first == HeadSet::many);
    CHECK(parts[part].second.first == parts[part - 1].second.second);
    CHECK(parts[part].second.second > parts[part].second.first);
  }
  // Rows of logits are counted in each part: six of few heads, one of many.
  for (const auto& [set, row] : server.tokens.rows) CHECK(row < (set == HeadSet::few ? 6 : 1));
  CHECK(server.scheduler.pool().num_free() == kBlocks);
}

TEST_CASE("a request of few heads takes as many blocks less", "[groups_by_load]") {
  for (const auto& [heads, blocks] : {std::pair{HeadAssignment::many, 9}, {HeadAssignment::few, 3}}) {
    GroupsByLoad fixed = kGroupRule;
    fixed.heads = heads;
    std::size_t most = 0;
    GroupServer server(options_of(fixed), {.on_step = [&](const ServedStep& step) {
                         most = std::max(most, step.plan.batch.block_tables.front().size());
                         CHECK(step.scheduler.pool().num_blocks() - step.scheduler.pool().num_free() ==
                               static_cast<int>(step.plan.batch.block_tables.front().size()));
                       }});
    server.submit(0, 0, 30, 7);  // 36 tokens in the cache: 9 blocks of 4, or 3 of 16
    server.loop.run();
    CHECK(most == static_cast<std::size_t>(blocks));
  }
}

TEST_CASE("thresholds that are never reached leave a run as it is with one set", "[groups_by_load]") {
  const GroupsByLoad never{.waiting_above = 1 << 20, .usage_above = 1};
  GroupServer with(options_of(never)), without(options_of(std::nullopt));
  for (GroupServer* server : {&with, &without}) {
    for (SequenceId id = 0; id < 30; ++id)
      server->submit(0.7 * static_cast<double>(id), id, 5 + 3 * static_cast<int>(id % 9), 12);
    server->loop.run();
  }
  CHECK(with.clock.now() == without.clock.now());
  CHECK(with.loop.report().num_steps == without.loop.report().num_steps);
  REQUIRE(with.loop.report().requests.size() == 30);
  for (std::size_t index = 0; index < 30; ++index) {
    CHECK(with.loop.report().requests[index].id == without.loop.report().requests[index].id);
    CHECK(with.loop.report().requests[index].latency == without.loop.report().requests[index].latency);
  }
  CHECK(with.scheduler.head_sets().requests.back() == 0);
  CHECK(with.scheduler.num_preemptions() == without.scheduler.num_preemptions());
}

TEST_CASE("whoever is preempted keeps its heads, and no block is lost", "[groups_by_load]") {
  for (const PreemptionMode mode : {PreemptionMode::recompute, PreemptionMode::swap}) {
    EngineOptions options =
        options_of(GroupsByLoad{.waiting_above = 3, .waiting_below = 1, .usage_above = 0.8, .usage_below = 0.6});
    options.preemption_mode = mode;
    std::map<SequenceId, HeadSet> first_set;
    int finished = 0;
    const auto see = [&](const ServedStep& step) {
      CHECK(step.scheduler.pool().audit().empty());
      for (const SequenceSlice& slice : step.plan.batch.sequences)
        CHECK(first_set.try_emplace(slice.id, step.plan.batch.head_set).first->second == step.plan.batch.head_set);
    };
    const int host_blocks = mode == PreemptionMode::swap ? 12 : 0;
    GroupServer server(options, {.on_finished = [&](const Sequence&) { ++finished; }, .on_step = see}, host_blocks);
    std::mt19937 random(7);
    double arrival = 0;
    for (SequenceId id = 0; id < 150; ++id) {
      arrival += std::exponential_distribution<>(id % 60 < 30 ? 0.02 : 0.3)(random);
      server.submit(arrival, id, std::uniform_int_distribution(1, 60)(random),
                    std::uniform_int_distribution(1, 60)(random));
    }
    server.loop.run();
    CHECK(finished == 150);
    CHECK(server.scheduler.num_preemptions() > 0);
    const HeadSetCounts& counts = server.scheduler.head_sets();
    CHECK(counts.requests[0] + counts.requests[1] == 150);
    CHECK(counts.requests[0] > 0);
    CHECK(counts.requests[1] > 0);
    CHECK(counts.switches > 2);
    CHECK((server.many.num_swapped + server.few.num_swapped > 0) == (mode == PreemptionMode::swap));
    CHECK(server.scheduler.pool().num_free() == kBlocks);
    CHECK(server.scheduler.host_pool().num_free() == host_blocks);
  }
}
