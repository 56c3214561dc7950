// How often attention kernels ask for K and V: counted by hand for small steps.
#include "lower/attention_walk.hpp"

#include <algorithm>

#include "lower/dculab_gpu/paged_attention_tiling.hpp"
#include "lower/lower.hpp"
#include "model/plan_step.hpp"
#include "tests/lower/kernel_cases.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::lower::test {
namespace {

// 4 query heads of 8 values, 2 KV heads.
ModelShape small_model() {
  ModelShape model = sim::test::tiny_llama();
  model.kinds[0].gqa().heads = {4, 2, 8};
  return model;
}

StepPlan prefill(const ModelShape& model, int computed, int tokens) {
  Batch batch;
  batch.sequences = {{.id = 0, .phase = Phase::prefill, .num_computed_tokens = computed, .num_new_tokens = tokens}};
  return plan_step(model, {}, batch);
}

double attention_requests(const StepPlan& plan, OpKind kind, OperandRole role) {
  const Launch launch = lower(find(plan, kind), plan, sim::test::mi50_like());
  return std::ranges::find(launch.accesses(), role, &Access::role)->requests;
}

TEST_CASE("decode walks each KV block once for a whole group, or once per head") {
  EngineOptions options;
  options.attention_split.partition_tokens = 64;
  StepPlan plan = plan_step(small_model(), options, uniform_batch(Phase::decode, 2, 100));
  const Op& op = find(plan, OpKind::attention_decode);
  const AttentionWalk group = walk_of(op, plan, {.query_heads = 2, .partition_tokens = 64});
  CHECK(group.workgroups == 2 * 2 * 2);  // sequences x KV heads x partitions
  CHECK(group.table_entries == 2 * 7 * 2);
  CHECK(group.partitions_combined == 4);
  CHECK(group.tokens == 200);
  CHECK(attention_requests(plan, OpKind::attention_decode, OperandRole::kv_read) == 1);
  const AttentionWalk per_head = walk_of(op, plan, {.query_heads = 1, .partition_tokens = 64});
  CHECK(per_head.workgroups == 2 * 4 * 2);
  plan.attention_split.query_heads_per_workgroup = 1;
  CHECK(attention_requests(plan, OpKind::attention_decode, OperandRole::kv_read) == 2);
}

// A decode of `tokens` new ones each: a token, and those drafted to follow it.
StepPlan verifying_small_model(int sequences, int computed, int tokens, int sliding_window = 0) {
  ModelShape model = small_model();
  model.kinds[0].gqa().sliding_window = sliding_window;
  Batch batch;
  for (int id = 0; id < sequences; ++id)
    batch.sequences.push_back({.id = id,
                               .num_computed_tokens = computed,
                               .num_new_tokens = tokens,
                               .num_logits = tokens,
                               .num_draft_tokens = tokens - 1});
  return plan_step(model, {}, batch);
}

TEST_CASE("drafted tokens share a pass over K and V as far as a workgroup's rows go") {
  const StepPlan plan = verifying_small_model(2, 99, 5);
  const Op& op = find(plan, OpKind::attention_decode);
  const AttentionWalk one = walk_of(op, plan, {.query_tokens = 8, .query_heads = 2, .partition_tokens = 64});
  CHECK(one.tokens == 2 * 104);
  CHECK(one.workgroups == 2 * 2 * 2);           // sequences x KV heads x partitions
  CHECK(one.partitions_combined == 2 * 2 * 5);  // of each query token
  const AttentionWalk three = walk_of(op, plan, {.query_tokens = 2, .query_heads = 2, .partition_tokens = 64});
  CHECK(three.tokens == 2 * (101 + 103 + 104));
  CHECK(three.workgroups == 2 * 2 * 2 * 3);
  const AttentionWalk whole = walk_of(op, plan, {.query_tokens = 1, .query_heads = 2});
  CHECK(whole.tokens == 2 * (100 + 101 + 102 + 103 + 104));
  CHECK(whole.partitions_combined == 0);
}

TEST_CASE("drafted tokens walk what the first of a pass sees of a window") {
  const StepPlan plan = verifying_small_model(1, 300, 4, 64);
  const Op& op = find(plan, OpKind::attention_decode);
  CHECK(walk_of(op, plan, {.query_tokens = 4, .query_heads = 2}).tokens == 304 - 192);
  const StepPlan one = verifying_small_model(1, 300, 1, 64);
  CHECK(walk_of(find(one, OpKind::attention_decode), one, {.query_heads = 2}).tokens == 301 - 192);
}

TEST_CASE("a kernel that looks up a tile at a time waits once a tile, whatever the block size") {
  const AttentionTile by_tiles{.query_heads = 2, .partition_tokens = 64, .look_up = {.tokens = 32, .waits = 2}};
  for (const int block_size : {1, 16, 64}) {
    EngineOptions options;
    options.block_size = block_size;
    const StepPlan plan = plan_step(small_model(), options, uniform_batch(Phase::decode, 2, 100));
    const Op& op = find(plan, OpKind::attention_decode);
    const AttentionWalk walk = walk_of(op, plan, by_tiles);
    CHECK(walk.waits_for_table == 2 * 2 * (2 + 2) * 2);  // sequences x KV heads x tiles of both partitions x waits
    CHECK(walk.table_entries == 2 * 2 * ((64 + block_size - 1) / block_size + (36 + block_size - 1) / block_size));
  }
}

TEST_CASE("a context that lies in one block is looked up once") {
  EngineOptions options;
  options.block_size = 128;
  const StepPlan plan = plan_step(small_model(), options, uniform_batch(Phase::decode, 1, 100));
  const Op& op = find(plan, OpKind::attention_decode);
  CHECK(walk_of(op, plan, {.query_heads = 2, .look_up = {.tokens = 32}}).waits_for_table == 2);
  const StepPlan whole = prefill(small_model(), 0, 100);
  const AttentionTile tile{.query_tokens = 64, .query_heads = 2, .look_up = {.tokens = 32}};
  CHECK(walk_of(find(whole, OpKind::attention_prefill), whole, tile).waits_for_table == 2 * (2 + 4));
}

TEST_CASE("each lane of paged attention serves a query head, however many values of the KV cache lie in 16 bytes") {
  for (const Dtype cache : {Dtype::f32, Dtype::f16, Dtype::int8, Dtype::kivi4, Dtype::kivi2})
    for (const int heads : {1, 4, 7, 32}) {
      const auto tiling = dculab_gpu::tile_paged_attention(cache, 128, heads);
      CAPTURE(name(cache), heads);
      CHECK(tiling.lane_heads >= 1);
      CHECK(tiling.lane_heads * tiling.team >= heads);
    }
}

TEST_CASE("the partial results of split contexts are written and read in F32") {
  EngineOptions options;
  options.attention_split.partition_tokens = 64;
  const StepPlan plan = plan_step(small_model(), options, uniform_batch(Phase::decode, 2, 100));
  const Op& op = find(plan, OpKind::attention_decode);
  const Launch launch = lower(op, plan, sim::test::mi50_like());
  CHECK(launch.kernels == 2);
  CHECK(launch.unique_bytes() - op.unique_bytes() == Bytes(2 * 4 * 4 * 32));  // 4 partitions of 4 heads of 8 values
}

TEST_CASE("prefill walks the context once per query tile") {
  const StepPlan plan = prefill(small_model(), 20, 10);
  // Tiles end at 24, 28 and 30 tokens.
  const AttentionWalk walk =
      walk_of(find(plan, OpKind::attention_prefill), plan, {.query_tokens = 4, .query_heads = 2});
  CHECK(walk.tokens == 24 + 28 + 30);
  CHECK(walk.workgroups == 3 * 2);
  CHECK(walk.longest_tokens == 30);
  CHECK(walk.table_entries == 3 * 2 * 2);
}

TEST_CASE("a sliding window is walked by the KV tiles that hold it, and no others") {
  ModelShape model = small_model();
  model.kinds[0].gqa().sliding_window = 100;
  // The token at 299 sees 200 to 299; the tile that holds 200 begins at 192, in the second partition of 128.
  const StepPlan decode = plan_step(model, {}, uniform_batch(Phase::decode, 2, 300));
  const AttentionTile tile{.query_tokens = 8, .query_heads = 2, .partition_tokens = 128};
  const AttentionWalk walk = walk_of(find(decode, OpKind::attention_decode), decode, tile);
  CHECK(walk.workgroups == 2 * 2 * 2);
  CHECK(walk.longest_tokens == 64);
  CHECK(walk.table_entries == 2 * 2 * (4 + 3));
  CHECK(walk.partitions_combined == 4);
  // Tiles of queries from 150, 158 and 166 see tokens from 51, 59 and 67 on: tiles at 0, 0 and 64.
  const StepPlan chunk = prefill(model, 150, 20);
  const AttentionWalk tiles = walk_of(find(chunk, OpKind::attention_prefill), chunk, tile);
  CHECK(tiles.tokens == 158 + 166 + 106);
  CHECK(tiles.longest_tokens == 166);
}

TEST_CASE("the longest contexts of the largest batch are walked whole: 2^40 partitions") {
  const StepPlan plan = plan_step(small_model(), {}, uniform_batch(Phase::decode, 1 << 16, 1 << 24));
  const AttentionWalk walk = walk_of(find(plan, OpKind::attention_decode), plan, {.partition_tokens = 1});
  CHECK(walk.partitions_combined == 0x1p40);
}

}  // namespace
}  // namespace dculab::lower::test
