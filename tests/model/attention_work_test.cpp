// What attention reads and computes, against numbers worked out by hand.
#include "model/attention_work.hpp"

#include <algorithm>

#include "tests/model/small_plan.hpp"
#include "tests/support/catch.hpp"

namespace dculab {
namespace {

TEST_CASE("decode attention reads whole blocks, each token once") {
  EngineOptions options;
  options.block_size = 16;
  const StepPlan plan = plan_step(small_model(), options, uniform_batch(Phase::decode, 2, 100));
  const AttentionWork& work = find(plan, "attention_decode").attention;
  CHECK(work.context_tokens == 200);
  CHECK(work.score_pairs == 200);
  CHECK(work.kv_blocks == 14);  // ceil(100 / 16) = 7 for each sequence
  CHECK(work.padded_tokens == 224);
  const Operand& kv = operand(find(plan, "attention_decode"), OperandRole::kv_read);
  CHECK(kv.unique.value() == 2.0 * 200 * 2 * 8 * 2);
  CHECK(kv.contiguous_run.value() == 16 * 8 * 2);
}

TEST_CASE("prefill attention is causal") {
  EngineOptions options;
  Batch batch;
  batch.sequences = {{.id = 0, .phase = Phase::prefill, .num_computed_tokens = 20, .num_new_tokens = 10}};
  const StepPlan plan = plan_step(small_model(), options, batch);
  const Op& op = find(plan, "attention_prefill");
  CHECK(op.attention.score_pairs == 10 * 20 + 55);
  CHECK(op.flops.value() == 4.0 * 255 * 32);
}

TEST_CASE("a sliding window loads the KV tiles that hold it, and no others") {
  ModelShape model = small_model();
  model.kinds[0].gqa().sliding_window = 100;
  const EngineOptions options;
  // The token at 299 sees 200 to 299; the tile that holds 200 begins at 192.
  const StepPlan decode = plan_step(model, options, uniform_batch(Phase::decode, 2, 300));
  const AttentionWork& work = find(decode, "attention_decode").attention;
  CHECK(work.score_pairs == 2 * 100);
  CHECK(work.context_tokens == 2 * 108);
  CHECK(work.kv_blocks == 2 * 7);  // of 16: 12 to 18

  Batch batch;
  batch.sequences = {{.id = 0, .phase = Phase::prefill, .num_computed_tokens = 150, .num_new_tokens = 20}};
  const StepPlan prefill = plan_step(model, options, batch);
  const Op& op = find(prefill, "attention_prefill");
  CHECK(op.attention.score_pairs == 20 * 100);
  CHECK(op.attention.context_tokens == 170);
}

TEST_CASE("a window longer than the context changes nothing, and its score pairs are those counted one by one") {
  for (const int window : {1, 7, 30, 64, 200}) {
    ModelShape model = small_model();
    model.kinds[0].gqa().sliding_window = window;
    for (const int computed : {0, 3, 40}) {
      Batch batch;
      batch.sequences = {{.id = 0, .phase = Phase::prefill, .num_computed_tokens = computed, .num_new_tokens = 50}};
      double pairs = 0;
      for (int position = computed; position < computed + 50; ++position) pairs += std::min(position + 1, window);
      const StepPlan plan = plan_step(model, {}, batch);
      CHECK(find(plan, "attention_prefill").attention.score_pairs == pairs);
      if (window < computed + 50) continue;
      const StepPlan all = plan_step(small_model(), {}, batch);
      CHECK(find(plan, "attention_prefill").unique_bytes() == find(all, "attention_prefill").unique_bytes());
      CHECK(find(plan, "attention_prefill").flops == find(all, "attention_prefill").flops);
    }
  }
}

}  // namespace
}  // namespace dculab
