// Expected tokens of drafts against their closed forms and against draws, and what drafting takes.
#include <algorithm>
#include <cmath>

#include "core/draft_counts.hpp"
#include "model/draft_heads.hpp"
#include "model/kv/kv_bytes.hpp"
#include "model/plan_step.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/speculation/acceptance.hpp"
#include "sim/speculation/draft_work.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;
using namespace dculab::sim;
using namespace dculab::sim::test;

namespace {

EngineOptions drafting(SpeculativeMethod method, const DraftShape& shape) {
  EngineOptions options;
  options.max_num_seqs = 16;
  options.speculative_config.method = method;
  options.speculative_config.shape = shape;
  return options;
}

ModelShape small_draft() {
  ModelShape draft = llama_2_7b();
  draft.name = "draft";
  draft.hidden_size = 512;
  draft.kinds[0].mlp.intermediate_size = 1408;
  draft.layers.assign(4, 0);
  draft.kinds[0].gqa().heads = {8, 8, 64};
  return draft;
}

// Tokens of a step, drawn for `sequences` sequences.
DraftCounts drawn(const Acceptance& acceptance, const DraftShape& shape, int sequences) {
  DraftCounts counts;
  const DraftTree draft = draft_of(shape, shape.num_tokens(), shape.depth());
  for (int seed = 0; seed < sequences; ++seed) {
    Verdict verdict;
    verdict.path = accepted_path(acceptance, draft, static_cast<std::uint64_t>(seed), 100);
    counts.add(draft, verdict);
  }
  return counts;
}

}  // namespace

TEST_CASE("a chain's expected tokens are those of Leviathan's equation 1") {
  for (const double rate : {0.0, 0.53, 0.8, 0.95, 1.0})
    for (const int tokens : {1, 3, 7}) {
      double sum = 0;
      for (int accepted = 0; accepted <= tokens; ++accepted) sum += std::pow(rate, accepted);
      CHECK_THAT(expected_tokens_of_chain(rate, tokens), WithinRel(sum, 1e-12));
      CHECK_THAT(expected_tokens({.by_depth = {rate}}, chain_shape(tokens)), WithinRel(sum, 1e-12));
      CHECK_THAT(rate_of_chain(sum, tokens), WithinAbs(rate, 1e-9));
    }
  CHECK_THAT(lecture_speed_up(0.8, 5, 0), WithinRel(3.68928, 1e-9));
  CHECK_THAT(lecture_speed_up(0.8, 5, 0.1), WithinRel(3.68928 / 1.5, 1e-9));
}

TEST_CASE("rates by depth multiply, and the last stands for deeper places") {
  const Acceptance acceptance{.by_depth = {0.9, 0.5}};
  CHECK_THAT(expected_tokens(acceptance, chain_shape(4)),
             WithinRel(1 + 0.9 + 0.9 * 0.5 + 0.9 * 0.25 + 0.9 * 0.125, 1e-12));
}

TEST_CASE("a place with several guesses is accepted unless all of them are rejected") {
  const Acceptance acceptance{.by_rank = {0.6, 0.3, 0.2}};
  const double place = 1 - 0.4 * 0.7 * 0.8;
  const int branches[] = {3, 3};
  CHECK_THAT(expected_tokens(acceptance, full_tree_shape(branches)), WithinRel(1 + place + place * place, 1e-12));
  // Only what follows the likeliest guess goes on.
  const DraftShape shape = parse_draft_shape("[(0,), (1,), (0, 0), (0, 1)]");
  CHECK_THAT(expected_tokens(acceptance, shape), WithinRel(1 + (1 - 0.4 * 0.7) + 0.6 * (1 - 0.4 * 0.7), 1e-12));
}

TEST_CASE("draws accept as often as the closed form says, by depth and by rank") {
  const int branches[] = {3, 2, 2};
  struct Case {
    Acceptance acceptance;
    DraftShape shape;
  };
  for (const Case& each :
       {Case{{.by_depth = {0.8}}, chain_shape(6)}, Case{{.by_depth = {0.9, 0.6, 0.3}}, chain_shape(3)},
        Case{{.by_depth = {0.7, 0.5}, .by_rank = {0.7, 0.3, 0.2}}, full_tree_shape(branches)}}) {
    constexpr int kDraws = 200'000;
    const DraftCounts counts = drawn(each.acceptance, each.shape, kDraws);
    const double expected = expected_tokens(each.acceptance, each.shape);
    // Accepted tokens lie between 0 and the depth: five standard errors of the mean at most.
    const double error = 5 * each.shape.depth() / 2.0 / std::sqrt(static_cast<double>(kDraws));
    CHECK_THAT(counts.mean_acceptance_length(), WithinAbs(expected, error));
    const Acceptance found = acceptance_of(counts);
    CHECK(static_cast<int>(found.by_depth.size()) == each.shape.depth());
    for (std::size_t rank = 1; rank < found.by_rank.size(); ++rank)
      CHECK_THAT(found.by_rank[rank], WithinAbs(each.acceptance.rate(1, static_cast<int>(rank)), 0.02));
  }
}

TEST_CASE("what is accepted depends on the sequence and the place alone") {
  const Acceptance acceptance{.by_depth = {0.6}};
  const DraftTree whole = draft_of(chain_shape(8), 8, 8);
  const DraftTree short_one = draft_of(chain_shape(8), 3, 8);
  int differ = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto path = accepted_path(acceptance, whole, seed, 40);
    CHECK(path == accepted_path(acceptance, whole, seed, 40));
    CHECK(accepted_path(acceptance, short_one, seed, 40).size() == std::min<std::size_t>(3, path.size()));
    differ += path != accepted_path(acceptance, whole, seed + 1000, 40) ? 1 : 0;
  }
  CHECK(differ > 50);
}

TEST_CASE("acceptance is refused that cannot judge a draft") {
  CHECK(problems(Acceptance{}, chain_shape(2)).size() == 1);
  CHECK(problems(Acceptance{.by_depth = {1.5}}, chain_shape(2)).size() == 1);
  const int branches[] = {3};
  CHECK(problems(Acceptance{.by_depth = {0.5}}, full_tree_shape(branches)).size() == 1);
  CHECK(problems(Acceptance{.by_rank = {0.5, 0.2, 0.1}}, full_tree_shape(branches)).empty());
}

TEST_CASE("a step that verifies drafts multiplies more rows and reads K and V once") {
  const ModelShape model = llama_3_8b();
  const Batch plain = uniform_batch(Phase::decode, 4, 500);
  const Batch verifying = with_drafts(plain, chain_shape(3));
  CHECK(verifying.num_tokens() == 16);
  const StepPlan before = plan_step(model, {}, plain), after = plan_step(model, {}, verifying);
  REQUIRE(before.ops.size() == after.ops.size());
  for (std::size_t index = 0; index < after.ops.size(); ++index) {
    INFO(after.ops[index].name);
    if (after.ops[index].kind == OpKind::matmul) CHECK(after.ops[index].m == 4 * before.ops[index].m);
  }
  const auto attention = [](const StepPlan& plan) {
    return *std::ranges::find(plan.ops, OpKind::attention_decode, &Op::kind);
  };
  // Each sequence has 3 tokens more in its cache: 503 of 500.
  CHECK_THAT(attention(after).operands()[0].unique / attention(before).operands()[0].unique,
             WithinRel(503.0 / 500, 1e-9));
  CHECK_THAT(attention(after).attention.score_pairs, WithinRel(4.0 * (500 + 501 + 502 + 503), 1e-12));
}

TEST_CASE("a draft model runs once for each drafted token, and a level of a tree at a time") {
  const Machine machine = mi50_like();
  const ModelShape model = llama_2_7b();
  const Speculation speculation{.draft = small_draft(), .draft_weights = {}, .acceptance = {.by_depth = {0.8}}};
  const EngineOptions options = drafting(SpeculativeMethod::draft_model, chain_shape(4));
  const DraftWork work(machine, model, options, {}, speculation);
  const auto tasks = uniform_tasks(chain_shape(4), 3, 200);
  const std::vector<StepPlan> steps = work.plan(tasks);
  REQUIRE(steps.size() == 4);
  for (std::size_t step = 0; step < 4; ++step)
    for (const SequenceSlice& slice : steps[step].batch.sequences) {
      CHECK(slice.num_new_tokens == 1);
      CHECK(slice.context_tokens() == 200 + static_cast<int>(step));
    }
  const int branches[] = {2, 2, 1};
  const DraftShape tree = full_tree_shape(branches);
  const EngineOptions tree_options = drafting(SpeculativeMethod::draft_model, tree);
  const DraftWork of_tree(machine, model, tree_options, {}, speculation);
  const std::vector<StepPlan> levels = of_tree.plan(uniform_tasks(tree, 3, 200));
  REQUIRE(levels.size() == 3);
  CHECK(levels[1].batch.sequences[0].num_new_tokens == 2);
  CHECK(levels[2].batch.sequences[0].num_new_tokens == 4);
  CHECK(levels[2].batch.sequences[0].context_tokens() == 200 + 2 + 4);
  CHECK(work.memory().weights == weight_footprint(small_draft(), {}));
  CHECK(work.memory().kv_bytes_per_token == kv_bytes_per_token(small_draft(), options.kv_cache_dtype));
}

TEST_CASE("nothing but a prompt's own chunk is computed where nothing is drafted") {
  const Machine machine = mi50_like();
  const Speculation speculation{.draft = small_draft(), .draft_weights = {}, .acceptance = {.by_depth = {0.8}}};
  const EngineOptions options = drafting(SpeculativeMethod::draft_model, chain_shape(4));
  const ModelShape model = llama_2_7b();
  const DraftWork work(machine, model, options, {}, speculation);
  std::vector<DraftTask> tasks(2);
  tasks[0].missing = {.id = 0, .phase = Phase::prefill, .num_new_tokens = 100, .num_logits = 0};
  tasks[1].missing = {.id = 1, .num_computed_tokens = 10, .num_new_tokens = 0};
  const std::vector<StepPlan> steps = work.plan(tasks);
  REQUIRE(steps.size() == 1);
  CHECK(steps[0].batch.num_tokens() == 100);
  CHECK(work.plan({}).empty());
  CHECK(work.price({}).seconds == Seconds{});
}

TEST_CASE("a host schedules nothing between the steps of a round") {
  Machine machine = mi50_like();
  const Speculation speculation{.draft = small_draft(), .draft_weights = {}, .acceptance = {.by_depth = {0.8}}};
  const EngineOptions options = drafting(SpeculativeMethod::draft_model, chain_shape(4));
  const ModelShape model = llama_2_7b();
  const auto tasks = uniform_tasks(chain_shape(4), 3, 200);
  const Seconds quick = DraftWork(machine, model, options, {}, speculation).price(tasks).seconds;
  CHECK(quick > Seconds{});
  machine.overheads.host_per_step = Seconds(10);
  CHECK_THAT(DraftWork(machine, model, options, {}, speculation).price(tasks).seconds.value(), WithinRel(quick.value(), 1e-6));
}

TEST_CASE("heads draft in one pass, and a layer for further tokens once for each") {
  const Machine machine = mi50_like();
  ModelShape model = llama_2_7b();
  model.num_nextn_predict_layers = 1;
  const Speculation speculation{.draft = {}, .draft_weights = {}, .acceptance = {.by_depth = {0.6}}};
  const auto tasks = uniform_tasks(chain_shape(3), 2, 100);
  const EngineOptions heads = drafting(SpeculativeMethod::medusa, chain_shape(3));
  const DraftWork medusa(machine, model, heads, {}, speculation);
  REQUIRE(medusa.plan(tasks).size() == 1);
  const auto is_product = [](const Op& op) { return op.kind == OpKind::matmul; };
  CHECK(std::ranges::count_if(medusa.plan(tasks)[0].ops, is_product) == 6);
  const double head = 4096.0 * 4096 + 4096 + 4096.0 * 32000;
  CHECK_THAT(medusa.memory().weights.value(), WithinRel(3 * 2 * head, 1e-12));
  CHECK(medusa.memory().kv_bytes_per_token == Bytes());

  const EngineOptions layer = drafting(SpeculativeMethod::mtp, chain_shape(3));
  const DraftWork mtp(machine, model, layer, {}, speculation);
  const std::vector<StepPlan> steps = mtp.plan(tasks);
  REQUIRE(steps.size() == 3);
  CHECK(std::ranges::count_if(steps[0].ops, [](const Op& op) { return op.name == "eh_proj"; }) == 1);
  CHECK(std::ranges::count_if(steps[0].ops, [](const Op& op) { return op.name == "qkv_proj"; }) == 1);
  CHECK(mtp.memory().kv_bytes_per_token * 32.0 == kv_bytes_per_token(model, layer.kv_cache_dtype));

  const EngineOptions look_up = drafting(SpeculativeMethod::ngram, chain_shape(3));
  const DraftWork ngram(machine, model, look_up, {}, speculation);
  CHECK(ngram.plan(tasks).empty());
  CHECK_THAT(ngram.price(tasks).seconds.value(), WithinRel(2 * 100 * kLookUpPerToken.value(), 1e-9));
}

TEST_CASE("a drafter's weights pass through the caches between two steps of a small model") {
  const Machine machine = cpu_like();
  const StepPlan plan = plan_step(tiny_llama(), {}, uniform_batch(Phase::decode, 1, 100));
  StepPrice alone, beside;
  price_step(machine, plan, 0, alone);
  price_step(machine, plan, 0, beside, Bytes(1e9));
  CHECK(beside.seconds > alone.seconds);
}
