#include "engine/executors/cpu_executor.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/executors/thread_shortage.hpp"
#include "engine/measure/trace_header.hpp"
#include "model/plan_step.hpp"
#include "tests/engine/support/allocation_counter.hpp"
#include "tests/engine/support/golden_model.hpp"
#include "tests/engine/support/stepper.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/few_threads.hpp"

namespace dculab::engine {
namespace {

StepPlan without_op(StepPlan plan, std::string_view name) {
  std::erase_if(plan.ops, [&](const Op& op) { return op.name == name; });
  return plan;
}

Op& op_named(StepPlan& plan, std::string_view name) {
  return *std::find_if(plan.ops.begin(), plan.ops.end(), [&](const Op& op) { return op.name == name; });
}

const std::vector<Feed> kPromptFeed{{0, Phase::prefill, {5, 6, 7, 8, 9}}};

}  // namespace

TEST_CASE("every op is timed, and their times fit into the step's") {
  Stepper stepper(load_weights(kGoldenFolder / "gqa"));
  const StepPlan plan = stepper.plan({{0, Phase::prefill, {5, 6, 7}}});
  const StepResult result = stepper.executor().run(plan);
  REQUIRE(result.op_durations.size() == plan.ops.size());
  Seconds sum;
  for (const Seconds duration : result.op_durations) {
    REQUIRE(duration > Seconds(0));
    sum += duration;
  }
  REQUIRE(sum <= result.duration);
}

#ifdef __linux__
TEST_CASE("without further threads an executor works with the first one, says so once, and traces record it") {
  static int reported = 0, had = 0, wanted = 0;
  const ModelWeights weights = load_weights(kGoldenFolder / "gqa");
  const int failed_check = with_few_threads(0, [&] {
    set_thread_shortage_handler([](int threads, int asked_for) {
      ++reported;
      had = threads;
      wanted = asked_for;
    });
    const KvCacheOptions kv{.num_blocks = 4, .block_size = 16};
    const CpuExecutor first(weights, kv, 1);
    if (reported != 0) return 1;
    const CpuExecutor second(weights, kv, 8), third(weights, kv, 4);
    if (reported != 1 || had != 1 || wanted != 8) return 2;
    if (trace_header(second, "").threads != 1 || second.device_name() != "CPU, 1 threads") return 3;
    return 0;
  });
  CHECK(failed_check == 0);
}
#endif

TEST_CASE("the plan decides what runs") {
  const ModelWeights weights = load_weights(kGoldenFolder / "gqa");
  Stepper whole(weights);
  const Logits expected = whole.step(kPromptFeed)[0];
  for (const char* name : {"input_layernorm", "qkv_proj", "rope_and_cache", "attention_prefill", "o_proj",
                           "post_attention_layernorm", "gate_up_proj", "silu_and_mul", "down_proj", "norm"}) {
    INFO(name);
    Stepper stepper(weights);
    stepper.executor().run(without_op(stepper.plan(kPromptFeed), name));
    const auto logits = stepper.executor().logits(0);
    REQUIRE_FALSE(std::equal(logits.begin(), logits.end(), expected.begin()));
  }
}

TEST_CASE("a plan for another model, dtype or KV cache is refused") {
  Stepper stepper(load_weights(kGoldenFolder / "gqa"));
  const StepPlan good = stepper.plan(kPromptFeed);
  const auto refused = [&](auto change, const char* message) {
    StepPlan plan = good;
    change(plan);
    REQUIRE_THROWS_WITH(stepper.executor().run(plan), ContainsSubstring(message));
  };
  refused([](StepPlan& plan) { op_named(plan, "qkv_proj").n += 1; }, "another shape");
  refused([](StepPlan& plan) { op_named(plan, "down_proj").k -= 1; }, "another shape");
  refused([](StepPlan& plan) { op_named(plan, "norm").m += 1; }, "another shape");
  refused([](StepPlan& plan) { op_named(plan, "silu_and_mul").n += 1; }, "another shape");
  refused([](StepPlan& plan) { op_named(plan, "embed_tokens").n += 1; }, "another shape");
  refused([](StepPlan& plan) { op_named(plan, "rope_and_cache").n += 1; }, "another shape");
  refused([](StepPlan& plan) { op_named(plan, "o_proj").count = 3; }, "another depth");
  refused([](StepPlan& plan) { op_named(plan, "o_proj").weight = WeightSlot::mlp_norm; }, "not a matrix of this model");
  refused([](StepPlan& plan) { op_named(plan, "norm").weight = WeightSlot::embed_norm; }, "not a norm of this model");
  refused([](StepPlan& plan) { op_named(plan, "norm").kind = OpKind::layer_norm; }, "another kind of norm");
  refused([](StepPlan& plan) { op_named(plan, "o_proj").input = Buffer::qkv; }, "another shape than its buffers");
  refused([](StepPlan& plan) { op_named(plan, "down_proj").output = Buffer::mlp_projected; }, "than its buffers");
  refused([](StepPlan& plan) { op_named(plan, "norm").output = Buffer::none; }, "another shape than its buffers");
  refused([](StepPlan& plan) { op_named(plan, "o_proj").weight_format.dtype = Dtype::f16; }, "another format");
  refused([](StepPlan& plan) { op_named(plan, "attention_prefill").attention.block_size = 32; }, "another KV cache");
  refused([](StepPlan& plan) { op_named(plan, "attention_prefill").attention.num_kv_heads = 1; }, "another shape");
}

TEST_CASE("a batch that contradicts itself or the KV cache is refused") {
  Stepper stepper(load_weights(kGoldenFolder / "gqa"));
  const StepPlan good = stepper.plan(kPromptFeed);
  const auto refused = [&](auto change, const char* message) {
    StepPlan plan = good;
    change(plan.batch);
    REQUIRE_THROWS_WITH(stepper.executor().run(plan), ContainsSubstring(message));
  };
  refused([](Batch& batch) { batch.token_ids.pop_back(); }, "token ids do not match");
  refused([](Batch& batch) { batch.block_tables.clear(); }, "one block table per sequence");
  refused([](Batch& batch) { batch.block_tables[0].clear(); }, "shorter than its context");
  refused([](Batch& batch) { batch.block_tables[0][0] = 1 << 20; }, "outside the KV cache");
  refused([](Batch& batch) { batch.block_tables[0][0] = -1; }, "outside the KV cache");
  refused([](Batch& batch) { batch.sequences[0].num_computed_tokens = 1000; }, "longer than max_position_embeddings");
  refused([](Batch& batch) { batch.sequences[0].num_draft_tokens = 1; }, "impossible drafts");
  refused([](Batch& batch) { batch.tree_masks = {1}; }, "tree masks do not match");
  refused([](Batch& batch) { batch.sequences[0].num_tree_tokens = 5; }, "tree masks do not match");
  refused([](Batch& batch) { batch.token_ids[2] = 96; }, "token id 96 is outside the model's vocabulary of 96");
  refused([](Batch& batch) { batch.token_ids[2] = -1; }, "token id -1 is outside the model's vocabulary of 96");
}

TEST_CASE("only sequences that need logits have a row, in order") {
  const ModelWeights weights = load_weights(kGoldenFolder / "mha");
  Stepper all(weights);
  const std::vector<Feed> feeds{{0, Phase::prefill, {3, 4, 5}}, {1, Phase::prefill, {6, 7}}, {2, Phase::prefill, {8}}};
  const std::vector<Logits> rows = all.step(feeds);
  Stepper some(weights);
  Batch batch = some.plan(feeds).batch;
  batch.sequences[0].num_logits = 0;
  some.executor().run(plan_step(weights.shape, some.engine(), std::move(batch)));
  for (const int row : {0, 1}) {
    const auto logits = some.executor().logits(row);
    REQUIRE(std::equal(logits.begin(), logits.end(), rows[static_cast<std::size_t>(row) + 1].begin()));
  }
}

TEST_CASE("a slice has logits for as many of its last tokens as it asks for") {
  const ModelWeights weights = load_weights(kGoldenFolder / "gqa");
  const std::vector<TokenId> tokens{3, 4, 5, 6, 7};
  Stepper single(weights);
  std::vector<Logits> rows;
  for (const TokenId token : tokens) rows.push_back(single.step({{0, Phase::prefill, {token}}}).front());
  Stepper several(weights);
  Batch batch = several.plan({{0, Phase::prefill, tokens}, {1, Phase::prefill, {8, 9}}}).batch;
  batch.sequences[0].num_logits = 3;
  const StepPlan plan = plan_step(weights.shape, several.engine(), batch);
  CHECK(plan.ops.back().m == 4);
  several.executor().run(plan);
  for (int row = 0; row < 3; ++row) {
    const auto logits = several.executor().logits(row);
    REQUIRE(std::equal(logits.begin(), logits.end(), rows[static_cast<std::size_t>(row) + 2].begin()));
  }
  batch.sequences[0].num_logits = 6;
  CHECK_THROWS_AS(several.executor().run(plan_step(weights.shape, several.engine(), batch)), std::invalid_argument);
}

TEST_CASE("a sequence goes on from copied blocks") {
  Stepper stepper(load_weights(kGoldenFolder / "gqa"), {.block_size = 4});
  static_cast<void>(stepper.step(kPromptFeed));
  static_cast<void>(stepper.step({{1, Phase::prefill, {1, 1, 1, 1, 1}}}));
  std::vector<BlockCopy> copies;
  for (std::size_t i = 0; i < 2; ++i) copies.push_back({stepper.blocks(0)[i], stepper.blocks(1)[i]});
  stepper.executor().copy_blocks(copies);
  const auto rows = stepper.step({{0, Phase::decode, {10}}, {1, Phase::decode, {10}}});
  REQUIRE(rows[0] == rows[1]);
}

TEST_CASE("a KV cache of 16 or 8 bits moves logits by no more than its rounding") {
  const GoldenModel golden("gqa");
  const ModelWeights weights = load_weights(golden.folder());
  const std::vector<Feed> prompt{{0, Phase::prefill, golden.prompts()[0].tokens}};
  Stepper exact(weights);
  const Logits expected = exact.step(prompt)[0];
  const float largest = std::fabs(*std::max_element(expected.begin(), expected.end(),
                                                    [](float a, float b) { return std::fabs(a) < std::fabs(b); }));
  for (const auto& [dtype, unit_roundoff] : {std::pair{Dtype::f16, 0x1p-11F},
                                             {Dtype::bf16, 0x1p-8F},
                                             {Dtype::fp8_e4m3, 0x1p-4F},
                                             {Dtype::fp8_e5m2, 0x1p-3F},
                                             {Dtype::int8, 1.0F / 254}}) {
    Stepper rounded(weights, {.kv_dtype = dtype});
    const Logits logits = rounded.step(prompt)[0];
    REQUIRE(logits != expected);
    // K and V of two layers are rounded once each: four roundings, of values no larger than the logits.
    for (std::size_t i = 0; i < logits.size(); ++i)
      REQUIRE(std::fabs(logits[i] - expected[i]) <= 4 * unit_roundoff * largest);
  }
}

TEST_CASE("a step allocates nothing but its result once it has warmed up") {
  Stepper stepper(load_weights(kGoldenFolder / "gqa"), {.block_size = 64});
  static_cast<void>(stepper.step({{0, Phase::prefill, {5, 6, 7}}, {1, Phase::prefill, {8, 9}}}));
  static_cast<void>(stepper.step({{0, Phase::decode, {3}}, {1, Phase::decode, {4}}}));
  // Without attention, whose kernel lists its tiles anew in each call.
  const StepPlan plan =
      without_op(stepper.plan({{0, Phase::decode, {5}}, {1, Phase::decode, {6}}}), "attention_decode");
  const int before = num_allocations();
  const StepResult result = stepper.executor().run(plan);
  REQUIRE(num_allocations() - before == 1);
  REQUIRE(result.op_durations.size() == plan.ops.size());
}

TEST_CASE("models that the kernels cannot run are refused") {
  ModelWeights weights = load_weights(kGoldenFolder / "gqa");
  weights.shape.kinds[0].gqa().heads.head_dim = 12;
  REQUIRE_THROWS_WITH(CpuExecutor(weights, {.num_blocks = 4}, 1), ContainsSubstring("needs a multiple of 8"));
  weights.shape.kinds[0].gqa().heads.head_dim = 16;
  LayerKind other = weights.shape.kinds[0];
  other.gqa().heads.num_key_value_heads = 1;
  weights.shape.kinds.push_back(other);
  REQUIRE_THROWS_WITH(CpuExecutor(weights, {.num_blocks = 4, .dtype = Dtype::kivi4}, 1),
                      ContainsSubstring("kivi4 cannot serve gqa: it needs equal heads and groups in all layers"));
  weights.shape.kinds.back().gqa().heads.head_dim = 32;
  REQUIRE_THROWS_WITH(CpuExecutor(weights, {.num_blocks = 4}, 1), ContainsSubstring("layers of different head"));
}

}  // namespace dculab::engine
