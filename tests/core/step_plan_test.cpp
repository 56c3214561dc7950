// The step plan against numbers worked out by hand.
#include "core/step_plan.hpp"

#include <algorithm>
#include <string_view>

#include "tests/support/catch.hpp"

namespace dculab {
namespace {

// Small enough to count by hand: 4 query heads, 2 KV heads.
ModelShape small_model() {
  ModelShape model;
  model.name = "small";
  model.hidden_size = 32;
  model.intermediate_size = 80;
  model.num_hidden_layers = 3;
  model.num_attention_heads = 4;
  model.num_key_value_heads = 2;
  model.head_dim = 8;
  model.vocab_size = 100;
  model.max_position_embeddings = 4096;
  return model;
}

const Op& find(const StepPlan& plan, std::string_view name) {
  const auto found = std::find_if(plan.ops.begin(), plan.ops.end(), [&](const Op& op) { return op.name == name; });
  REQUIRE(found != plan.ops.end());
  return *found;
}

const Operand& operand(const Op& op, OperandRole role) {
  const auto all = op.operands();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Operand& each) { return each.role == role; });
  REQUIRE(found != all.end());
  return *found;
}

TEST_CASE("a decode step has every op of a Llama layer, once, with the layer count") {
  const StepPlan plan = plan_step(small_model(), {}, uniform_batch(Phase::decode, 2, 100));
  const std::vector<std::string_view> expected{"embed_tokens",
                                               "input_layernorm",
                                               "qkv_proj",
                                               "rope_and_cache",
                                               "attention_decode",
                                               "o_proj",
                                               "post_attention_layernorm",
                                               "gate_up_proj",
                                               "silu_and_mul",
                                               "down_proj",
                                               "norm",
                                               "lm_head"};
  REQUIRE(plan.ops.size() == expected.size());
  for (std::size_t index = 0; index < expected.size(); ++index) {
    CHECK(plan.ops[index].name == expected[index]);
    CHECK(plan.ops[index].count == (plan.ops[index].stage == Stage::layer ? 3 : 1));
  }
}

TEST_CASE("matmul FLOP and bytes") {
  const StepPlan plan = plan_step(small_model(), {}, uniform_batch(Phase::decode, 2, 100));
  const Op& qkv = find(plan, "qkv_proj");
  CHECK(qkv.m == 2);
  CHECK(qkv.n == 32 + 2 * 16);
  CHECK(qkv.k == 32);
  CHECK(qkv.flops.value() == 2.0 * 2 * 64 * 32);
  CHECK(operand(qkv, OperandRole::weight).unique.value() == 64 * 32 * 2);
  CHECK(find(plan, "gate_up_proj").n == 160);
  CHECK(find(plan, "lm_head").n == 100);
}

TEST_CASE("int4 weights carry their scales and zero points, the head does not shrink") {
  EngineOptions options;
  options.weights = {Dtype::int4, 16};
  const StepPlan plan = plan_step(small_model(), options, uniform_batch(Phase::decode, 1, 10));
  // 32 x 80 values of half a byte; one F16 scale and one 4-bit zero point per 16 of them.
  CHECK(operand(find(plan, "down_proj"), OperandRole::weight).unique.value() == 32 * 80 * 0.5 + 32 * 80 / 16 * 2.5);
  CHECK(operand(find(plan, "lm_head"), OperandRole::weight).unique.value() == 100 * 32 * 2);
}

TEST_CASE("decode attention loads each KV block once for a whole group, or once per head") {
  EngineOptions options;
  options.block_size = 16;
  options.tiling.partition_tokens = 64;
  const StepPlan whole_group = plan_step(small_model(), options, uniform_batch(Phase::decode, 2, 100));
  const AttentionWork& work = find(whole_group, "attention_decode").attention;
  CHECK(work.heads_per_workgroup == 2);
  CHECK(work.context_tokens == 200);
  CHECK(work.score_pairs == 200);
  CHECK(work.kv_blocks == 14);  // ceil(100 / 16) = 7 for each sequence
  CHECK(work.padded_tokens == 224);
  CHECK(work.workgroups == 2 * 2 * 2);  // sequences x KV heads x partitions
  CHECK(work.block_lookups == 2 * 7 * 2);
  CHECK(work.partitions_combined == 4);
  const Operand& kv = operand(find(whole_group, "attention_decode"), OperandRole::kv_read);
  CHECK(kv.unique.value() == 2.0 * 200 * 2 * 8 * 2);
  CHECK(kv.requests == 1);
  CHECK(kv.contiguous_run.value() == 16 * 8 * 2);

  options.tiling.query_heads_per_workgroup = 1;
  const StepPlan per_head = plan_step(small_model(), options, uniform_batch(Phase::decode, 2, 100));
  CHECK(operand(find(per_head, "attention_decode"), OperandRole::kv_read).requests == 2);
  CHECK(find(per_head, "attention_decode").attention.workgroups == 2 * 4 * 2);
}

TEST_CASE("prefill attention is causal and walks the context once per query tile") {
  EngineOptions options;
  options.tiling.prefill_query_tokens = 4;
  Batch batch;
  batch.sequences = {{.id = 0, .phase = Phase::prefill, .num_computed_tokens = 20, .num_new_tokens = 10}};
  const StepPlan plan = plan_step(small_model(), options, batch);
  const Op& op = find(plan, "attention_prefill");
  CHECK(op.attention.score_pairs == 10 * 20 + 55);
  CHECK(op.flops.value() == 4.0 * 255 * 32);
  // Tiles end at 24, 28 and 30 tokens.
  CHECK(operand(op, OperandRole::kv_read).requests == Approx((24 + 28 + 30) / 30.0));
  CHECK(op.attention.workgroups == 3 * 2);
  CHECK(op.attention.longest_walk_tokens == 30);
  CHECK(op.attention.block_lookups == 3 * 2 * 2);
}

TEST_CASE("a mixed step has both attention ops; a chunk without logits has no head") {
  Batch batch;
  batch.sequences = {
      {.id = 0, .phase = Phase::prefill, .num_computed_tokens = 0, .num_new_tokens = 7, .needs_logits = false},
      {.id = 1, .phase = Phase::decode, .num_computed_tokens = 30, .num_new_tokens = 1, .needs_logits = true}};
  const StepPlan mixed = plan_step(small_model(), {}, batch);
  CHECK(find(mixed, "attention_prefill").m == 7);
  CHECK(find(mixed, "attention_decode").m == 1);
  CHECK(find(mixed, "lm_head").m == 1);
  batch.sequences.pop_back();
  const StepPlan chunk = plan_step(small_model(), {}, batch);
  CHECK(chunk.ops.back().name == "down_proj");
}

TEST_CASE("planning again into the same plan gives the same ops") {
  StepPlan plan = plan_step(small_model(), {}, uniform_batch(Phase::decode, 3, 50));
  const FlopCount before = total_flops(plan);
  const std::size_t ops = plan.ops.size();
  plan_step_into(plan, small_model(), {});
  CHECK(total_flops(plan) == before);
  CHECK(plan.ops.size() == ops);
}

}  // namespace
}  // namespace dculab
